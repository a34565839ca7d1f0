"""The two stacks of a comparison in the terminal, before anything is launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perf.report.console import make_console
from perf.report.differences import DIFFERENCE_COLUMNS, stack_differences
from perf.report.layout import Cell, Column, arrange

__all__ = ["show"]

_COLUMNS = (
    Column(DIFFERENCE_COLUMNS[0], line=0),
    Column(DIFFERENCE_COLUMNS[1], label="old {}"),
    Column(DIFFERENCE_COLUMNS[2], label="new {}"),
)


def show(terminal: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Print what the stacks do not agree on, through pytest's terminal reporter."""
    rows = stack_differences(old, new)
    if not rows:
        terminal.write_line("stackproof: the two stacks say the same of themselves")
        return
    terminal.write_line("stackproof: what differs between the two stacks")
    # pytest has no public name for the stream that its own report goes to.
    console = make_console(terminal._tw._file)  # noqa: SLF001
    for drawn in arrange(console, _COLUMNS, [[Cell(cell) for cell in row] for row in rows]):
        console.print(drawn)
