"""Two runs beside each other: what differs in their environments, and how their step times compare. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perf.report.differences import DIFFERENCE_COLUMNS, flat, stack_differences
from perf.report.figures.launches import Side
from perf.report.figures.model import Figure, Table
from perf.report.figures.ratios import forest, ratio
from perf.report.text import clean

__all__ = ["differences", "environment_table", "runs_forest", "stacks_table"]


def runs_forest(found: Sequence[Side]) -> Figure | None:
    """Draw the step time of each side over that of the same side in the first run; None for a single run."""
    first = next((side.run for side in found), "")
    # An audit counts what a loader delivers, once; its times are held against nothing.
    timed = [side for side in found if side.plan != "audit"]
    base = {(side.group, side.variant, side.plan): side for side in timed if side.run == first}
    rows = []
    for side in timed:
        old = base.get((side.group, side.variant, side.plan))
        if side.run and side.run != first and old is not None and (value := ratio(side, old)) is not None:
            name = side.variant + ("" if side.plan == "window" else f"+{side.plan}")
            rows.append((f"{name} in {side.group}, {side.run}", first, value))
    return forest(
        "runs",
        f"Step times over those of run {clean(first)}",
        "Nothing here is judged: the runs' launches were not made in turn, so what changed between them in time, node "
        "or load is in the ratio too. An interval that holds 1 says that no difference can be seen.",
        rows,
    )


def environment_table(environments: Mapping[str, Mapping[str, Any]]) -> Table:
    """List everything that the runs' environments hold, a column a run."""
    found_by_run = {run: flat(environment) for run, environment in environments.items()}
    keys = sorted({key for found in found_by_run.values() for key in found})
    rows = [(clean(key), *(clean(found.get(key, "–")) for found in found_by_run.values())) for key in keys]
    return Table(("fact", *map(clean, found_by_run)), rows)


def differences(environments: Mapping[str, Mapping[str, Any]]) -> Table:
    """List what the runs' environments do not agree on."""
    whole = environment_table(environments)
    return Table(whole.columns, [row for row in whole.rows if len(set(row[1:])) > 1])


def stacks_table(environment: Mapping[str, Any]) -> Table | None:
    """List what the two stacks of a comparison do not agree on; None for a run of one stack."""
    old, new = environment.get("against"), environment.get("stack")
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return None
    rows = [tuple(clean(cell) for cell in row) for row in stack_differences(old, new)]
    note = "Versions, torch's settings before anybody changes one, and the variables that matter to it."
    return Table(DIFFERENCE_COLUMNS, rows, note=note)
