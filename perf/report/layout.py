"""Rows that read well at any width: a table where it fits, else one block a row with the long names on their own lines.

Nothing is ever cut: variant ids and test names are what people copy.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from perf.report.text import MISSING, fit

__all__ = ["Cell", "Column", "arrange", "paragraph", "side_by_side"]

_INDENT = 4
_GAP = "  "

_UNBOUNDED = 100_000
"""More columns than any terminal: asks rich how wide a table would like to be."""

_LEAST_WIDTH = 20
"""Narrower than this, an indented paragraph is a column of letters; it is left to the terminal to fold it."""


@dataclass(frozen=True)
class Column:
    """A column: its heading, whether its values are numbers, and where they go when there is no room for a table.

    `line` counts the lines of long names above a row's values (0 is the first); None puts the values below them.
    `label` is a pattern that makes a value understood without its heading.
    """

    heading: str
    right: bool = False
    line: int | None = None
    label: str = "{}"


@dataclass(frozen=True)
class Cell:
    """A value and the style that it is drawn in, beside what its words say."""

    text: str
    style: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.text in {"", MISSING}


def arrange(
    console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> list[RenderableType]:
    """Lay rows out for the width and the encoding of `console`. There must be a row.

    The first of these that fits: a table; the long names of a row on lines of their own above columns of values;
    the same with each value labelled and wrapped. Columns in which no row has a value are left out.
    """
    kept = [place for place in range(len(columns)) if any(not row[place].empty for row in rows)]
    columns = [columns[place] for place in kept]
    rows = [[row[place] for place in kept] for row in rows]
    written = [[Cell(fit(cell.text, console.encoding), cell.style) for cell in row] for row in rows]
    table = _table(columns, written)
    wanted = Measurement.get(console, console.options.update_width(_UNBOUNDED), table).maximum
    if wanted <= console.width:
        return [table]
    values = [place for place, column in enumerate(columns) if column.line is None]
    headings = [Cell(column.heading, "bold") for column in columns]
    widths = {place: max(cell_len(row[place].text) for row in [headings, *written]) for place in values}
    aligned = _INDENT + sum(widths.values()) + len(_GAP) * (len(widths) - 1) <= console.width
    lines: list[RenderableType] = []
    if aligned:
        lines += _names(console, columns, headings)
        lines.append(_values(columns, headings, widths))
    for row, texts in zip(rows, written, strict=True):
        lines += _names(console, columns, texts)
        lines += [_values(columns, texts, widths)] if aligned else _labelled(console, columns, row)
    return lines


def side_by_side(console: Console, cells: Sequence[Cell], indent: int = 0) -> list[RenderableType]:
    """Draw cells, already fitted, on one line if they fit, else each on its own."""
    shown = [cell for cell in cells if cell.text]
    if indent + sum(cell_len(cell.text) for cell in shown) + len(_GAP) * (len(shown) - 1) > console.width:
        return [Text(cell.text, cell.style, overflow="fold") for cell in shown]
    if not shown:
        return []
    return [Text.assemble(" " * indent, Text(_GAP).join(Text(cell.text, cell.style) for cell in shown))]


def paragraph(console: Console, text: str, indent: int = 0, style: str = "") -> Text:
    """Draw foreign text, made safe and wrapped to the console's width; its own line feeds stay."""
    width = max(_LEAST_WIDTH, console.width - indent)
    lines = [
        " " * indent + piece
        for line in fit(text, console.encoding, keep_lines=True).split("\n")
        # Not at hyphens: ids and options hold them.
        for piece in textwrap.wrap(line, width, break_on_hyphens=False) or [""]
    ]
    return Text("\n".join(lines), style=style, overflow="fold")


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0))
    for column in columns:
        table.add_column(Text(column.heading), justify="right" if column.right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell.text, cell.style) for cell in row))
    return table


def _names(console: Console, columns: Sequence[Column], row: Sequence[Cell]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for number in sorted({column.line for column in columns if column.line is not None}):
        cells = [cell for column, cell in zip(columns, row, strict=True) if column.line == number]
        lines += side_by_side(console, cells, indent=_INDENT if number else 0)
    return lines


def _values(columns: Sequence[Column], row: Sequence[Cell], widths: dict[int, int]) -> Text:
    padded = []
    for place, width in widths.items():
        cell = row[place]
        space = " " * (width - cell_len(cell.text))
        padded.append(Text(space + cell.text if columns[place].right else cell.text + space, cell.style))
    line = Text.assemble(" " * _INDENT, Text(_GAP).join(padded))
    line.rstrip()
    return line


def _labelled(console: Console, columns: Sequence[Column], row: Sequence[Cell]) -> list[RenderableType]:
    pairs = zip(columns, row, strict=True)
    parts = [
        column.label.format(cell.text) for column, cell in pairs if column.line is None and not cell.empty
    ]
    return [paragraph(console, ", ".join(parts), indent=_INDENT)] if parts else []
