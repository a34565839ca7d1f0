"""Step times of every rank of every launch, with the stalled steps marked. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from perf.contract import LaunchRecord
from perf.report.figures.bars import launches_text
from perf.report.figures.launches import Side
from perf.report.figures.model import Axis, Figure, Line, Series, Table
from perf.report.figures.thinning import share_out, thin
from perf.report.text import clean, number, share

__all__ = ["POINTS", "STALL", "traces"]

STALL = 1.5
"""A stalled step takes more than so many medians of its launch, as the stall judgement counts it (docs/trust.md)."""

POINTS = 150_000
"""Points of all step traces of a page together: about 2 MB of the file, and it must open at once (docs/report.md)."""

_LEAST, _MOST = 16, 600
"""Points of one trace: 16 still show a drift and the worst stall, 600 are more than a screen has columns for."""

_MOST_STALLS = 40
"""Marks a launch, the longest stalls first; the table counts all."""


def traces(groups: Mapping[str, Sequence[Side]], budget: int = POINTS) -> list[Figure]:
    """One picture a side: step over step, a line for each launch and rank."""
    found = [side for group in groups.values() for side in group]
    count = sum(len(launch.step_seconds) for side in found for launch in side.launches)
    points = share_out(budget, count, _LEAST, _MOST)
    return [figure for side in found if (figure := _picture(side, points)) is not None]


def _picture(side: Side, points: int) -> Figure | None:
    launches = [launch for launch in side.launches if any(launch.step_seconds)]
    if not launches:
        return None
    series = []
    longest_run = 1
    marks: list[tuple[float, int, str]] = []
    ranks = max(len(launch.step_seconds) for launch in launches)
    for place, launch in enumerate(launches):
        for rank, steps in enumerate(launch.step_seconds):
            thinned = thin(steps, points)
            longest_run = max(longest_run, thinned.run)
            series.append(
                Series(
                    f"{clean(launch.launch)} rank {rank}",
                    list(thinned.places),
                    [_short(value) for value in thinned.values],
                    kind="line",
                    role=f"side-{rank if ranks > 1 else place}",
                    line=("solid", "dash", "dot")[place % 3],
                    size=0,
                )
            )
        marks += [
            (value, step, f"{clean(launch.launch)} rank {rank}, step {step}\n{number(value * 1e3)} ms")
            for value, step, rank in _stalls(launch)
        ]
    if marks:
        series.append(
            Series(
                "stalls",
                [float(step) for _, step, _ in marks],
                [_short(value) for value, _, _ in marks],
                role="fail",
                symbol="x",
                hover=[words for *_, words in marks],
            )
        )
    median = statistics.median(launch.median_step_seconds for launch in launches)
    how = (
        "every step is drawn"
        if longest_run == 1
        else f"of every {longest_run} steps of the longest trace the shortest and the longest are drawn, so no stall "
        "is lost"
    )
    run = f", run {side.run}" if side.run else ""
    return Figure(
        f"steps-{side.group}-{side.label}",
        clean(f"{side.variant}{'' if side.plan == 'window' else f'+{side.plan}'} in {side.group}{run}"),
        f"{launches_text(len(launches))}; a colour a {'rank' if ranks > 1 else 'launch'}. Thinned: {how}. Crosses: "
        f"steps above {STALL} × their launch's median, at most the {_MOST_STALLS} longest of a launch.",
        Axis("step of the timed window"),
        Axis("step time (ms)", from_zero=True),
        series,
        _table(launches),
        lines=[Line("y", median * 1e3, f"median {number(median * 1e3)} ms", role="ideal")],
        search=f"{side.group} {side.variant}",
    )


def _short(seconds: float) -> float:
    """Return milliseconds with four digits: a picture shows no more, and there are very many."""
    return float(f"{seconds * 1e3:.4g}")


def _stalls(launch: LaunchRecord) -> list[tuple[float, int, int]]:
    """Return the longest stalled steps of a launch: seconds, step, rank."""
    border = STALL * launch.median_step_seconds
    found = [
        (value, step, rank)
        for rank, steps in enumerate(launch.step_seconds)
        for step, value in enumerate(steps)
        if value > border > 0.0
    ]
    return sorted(found, reverse=True)[:_MOST_STALLS]


def _table(launches: Sequence[LaunchRecord]) -> Table:
    rows: list[tuple[str, ...]] = []
    for launch in launches:
        border = STALL * launch.median_step_seconds
        for rank, steps in enumerate(launch.step_seconds):
            if not steps:
                continue
            ordered = sorted(steps)
            stalled = sum(step > border for step in steps)
            rows.append(
                (
                    clean(launch.launch),
                    str(rank),
                    clean(launch.host[rank] if rank < len(launch.host) else "–"),
                    str(len(steps)),
                    f"{number(statistics.median(ordered) * 1e3)} ms",
                    f"{number(ordered[int(0.95 * (len(ordered) - 1))] * 1e3)} ms",
                    f"{number(ordered[-1] * 1e3)} ms",
                    f"{stalled} ({share(stalled / len(steps))})",
                )
            )
    return Table(
        ("launch", "rank", "host", "steps", "median", "95th percentile", "longest", "stalled"),
        rows,
        frozenset({1, 3, 4, 5, 6, 7}),
        f"Over all steps of the window, none left out. Stalled: above {STALL} × the launch's median.",
    )
