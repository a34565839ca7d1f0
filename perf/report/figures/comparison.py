"""Two stacks, or two runs, beside each other: what was judged of them, and what differs between them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perf.report.differences import DIFFERENCE_COLUMNS, flat, stack_differences
from perf.report.figures.launches import Side
from perf.report.figures.model import Axis, Figure, Line, Series, Table
from perf.report.figures.ratios import SYMBOLS, VERDICTS, distinct, forest, ratio
from perf.report.summary import VerdictRow
from perf.report.text import clean

__all__ = ["differences", "environment_table", "runs_forest", "stacks_forests", "stacks_table"]

NEW, OLD = "@new", "@old"
"""End the ids of the two sides of a comparison of stacks (`perf.catalogue.Member`)."""


def stacks_forests(rows: Sequence[VerdictRow]) -> list[Figure]:
    """Draw what was judged of two stacks, a picture a metric: the new one's number over the old one's, or minus it."""
    metrics: dict[str, list[VerdictRow]] = {}
    for row in rows:
        measured = row.estimate is not None and (row.estimate > 0.0 or row.unit != "ratio")
        if row.variant.endswith(NEW) and row.against.endswith(OLD) and measured:
            metrics.setdefault(row.metric, []).append(row)
    return [_stacks_forest(metric, found) for metric, found in metrics.items()]


def _stacks_forest(metric: str, rows: Sequence[VerdictRow]) -> Figure:
    names = distinct([clean(row.variant.removesuffix(NEW)) for row in rows])
    divided = rows[0].unit == "ratio"
    series = []
    for word in dict.fromkeys([*VERDICTS, *(row.verdict for row in rows)]):
        mine = [(row, name) for row, name in zip(rows, names, strict=True) if row.verdict == word]
        if mine:
            series.append(
                Series(
                    clean(word),
                    [row.estimate for row, _ in mine],
                    [name for _, name in mine],
                    role=word if word in VERDICTS else "muted",
                    low=[_drawn(row.low, divided) for row, _ in mine],
                    high=[_drawn(row.high, divided) for row, _ in mine],
                    hover=[
                        f"{clean(row.test)}\n{row.estimate_text}, limit {row.limit_text}\n"
                        f"{row.launches} launches a side: {clean(word)}"
                        for row, _ in mine
                    ],
                    symbol=SYMBOLS.get(word, "circle-open"),
                    size=9,
                    along_x=True,
                )
            )
    table = Table(
        ("variant", "new against old [bounds]", "limit", "launches a side", "would have seen", "verdict"),
        [
            (
                clean(row.variant.removesuffix(NEW)),
                row.estimate_text,
                row.limit_text,
                str(row.launches),
                row.detectable_text,
                clean(row.verdict),
            )
            for row in rows
        ],
        frozenset({1, 2, 3, 4}),
        "The two stacks were launched in turn, in one allocation. The bounds are those that the rule used; each "
        "variant has its own margin.",
    )
    words = clean(metric).replace("_", " ")
    how, equal = ("÷", 1.0) if divided else ("−", 0.0)
    return Figure(
        f"stacks-{clean(metric)}",
        f"New stack against old, {words}",
        f"Each point is the new stack's {words} {how} the old one's. Left of equal the new one is better; "
        f"the short line of a row is its limit.",
        Axis(f"{words}, new {how} old", log=divided),
        Axis("", categories=tuple(names)),
        series,
        table,
        lines=[
            Line("x", equal, "equal", role="ideal"),
            *(
                Line("x", row.limit, f"limit {row.limit_text}", category=place)
                for place, row in enumerate(rows)
                if row.limit is not None
            ),
        ],
        search=" ".join([*names, clean(metric)]),
    )


def _drawn(bound: float | None, divided: bool) -> float | None:
    """Return a bound that the axis can hold: a logarithmic one has no place for 0."""
    return None if bound is None or (divided and bound <= 0.0) else bound


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
