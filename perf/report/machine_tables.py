"""The tables of what the machine can do, and of what each variant makes of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType

from perf.report.layout import Cell, Column, arrange, paragraph
from perf.report.machine import FractionRow, RateRow, prefixed
from perf.report.text import share
from perf.verdict.portable import BOUNDS

__all__ = ["fractions", "rates"]

_RATE_COLUMNS = (
    Column("rate", line=0),
    Column("value", right=True),
    Column("spread", right=True),
    Column("repetitions", right=True, label="{} repetitions"),
    Column("remark", line=1),
)

_FRACTION_COLUMNS = (
    Column("variant", line=0),
    *(Column(bound, right=True, label=f"{bound} {{}}") for bound in BOUNDS),
    Column("known", label="known {}"),
    Column("nearest", line=1),
)


def rates(console: Console, rows: Sequence[RateRow]) -> list[RenderableType]:
    """Draw what the machine can do: one row a rate."""
    cells = [
        [
            Cell(row.rate, "bold"),
            Cell(prefixed(row.value, row.unit)),
            Cell("" if row.spread is None else f"±{share(row.spread)}"),
            Cell(str(row.repetitions) if row.repetitions else ""),
            Cell(row.remark),
        ]
        for row in rows
    ]
    note = (
        "spread: standard deviation over the repetitions within a launch. What each rate is: docs/rates.md."
    )
    return [*arrange(console, _RATE_COLUMNS, cells), paragraph(console, note, style="dim")]


def fractions(console: Console, rows: Sequence[FractionRow]) -> list[RenderableType]:
    """Draw what each variant makes of the machine: one row a variant, a column a bound.

    A variant that stands in several groups has one row: the group that was measured first.
    """
    first = {row.variant: row for row in reversed(rows)}
    cells = [
        [
            Cell(row.variant, "bold"),
            *(Cell(share(row.fractions[bound]) if bound in row.fractions else "") for bound in BOUNDS),
            Cell(row.known),
            Cell(row.nearest),
        ]
        for row in rows
        if first[row.variant] is row
    ]
    note = (
        "part of each rate above that the variant uses: the time that the resource alone would take, over the time "
        "that passed. kernel_launches leaves the optimizer out. known: the same on known systems."
    )
    return [*arrange(console, _FRACTION_COLUMNS, cells), paragraph(console, note, style="dim")]
