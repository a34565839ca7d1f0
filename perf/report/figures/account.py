"""Where the wall time of a run went: starting, training and the rest, by group. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.text import clean, duration, share

__all__ = ["Spent", "account_picture", "spent"]


@dataclass(frozen=True)
class Spent:
    """Seconds that a group's launches took. `window` is what was measured in, `start` the slowest ranks' start-up.

    `rest` is what lies between: warm-up, epochs outside the window, validation, reading back, ending.
    """

    group: str
    launches: int
    start: float
    window: float
    rest: float

    @property
    def total(self) -> float:
        """Wall time of the launches, from their start to their end, summed."""
        return self.start + self.window + self.rest


def spent(records: Sequence[LaunchRecord]) -> list[Spent]:
    """Account for the wall time of a run's launches, the group that took longest first.

    Start-up is until the warm-up begins, as the slowest rank saw it; where a record does not say, it is in the rest.
    """
    groups: dict[str, list[LaunchRecord]] = {}
    for record in records:
        groups.setdefault(record.group, []).append(record)
    rows = []
    for group, launches in groups.items():
        start = window = total = 0.0
        for launch in launches:
            total += launch.launch_seconds
            window += min(launch.window_seconds, launch.launch_seconds)
            start += min(_start(launch), max(0.0, launch.launch_seconds - launch.window_seconds))
        rows.append(Spent(group, len(launches), start, window, max(0.0, total - start - window)))
    return sorted(rows, key=lambda row: -row.total)


def account_picture(rows: Sequence[Spent]) -> Figure | None:
    """Stack start-up, window and rest of each group; None where there was no launch."""
    if not rows:
        return None
    names = tuple(clean(row.group) for row in rows)
    parts = (
        ("start-up", [row.start for row in rows]),
        ("measured window", [row.window for row in rows]),
        ("warm-up, epochs, the rest", [row.rest for row in rows]),
    )
    series = [
        Series(
            name,
            values,
            list(names),
            kind="bars",
            role=f"side-{place}",
            hover=[f"{group}\n{name}: {duration(value)}" for group, value in zip(names, values, strict=True)],
            along_x=True,
        )
        for place, (name, values) in enumerate(parts)
    ]
    whole = sum(row.total for row in rows)
    table = Table(
        ("group", "launches", "wall time", "share", *(name for name, _ in parts)),
        [
            (
                clean(row.group),
                str(row.launches),
                duration(row.total),
                share(row.total / whole if whole else None),
                duration(row.start),
                duration(row.window),
                duration(row.rest),
            )
            for row in rows
        ],
        frozenset(range(1, 7)),
        f"Sums over launches, {duration(whole)} in all; launches that failed, and the time between launches, "
        "are not in it.",
    )
    return Figure(
        "account",
        "Where the time of the run went",
        "Wall time of the launches of each group, summed.",
        Axis("wall time (s)", from_zero=True),
        Axis("", categories=names),
        series,
        table,
        stacked=True,
        search=" ".join(names),
    )


def _start(launch: LaunchRecord) -> float:
    """Return the start-up of the slowest rank in seconds: everything that its record times before the warm-up."""
    return max((_startup_of(rank) for rank in launch.startup_seconds), default=0.0)


def _startup_of(rank: dict[str, float]) -> float:
    """Sum what a rank timed one after the other; its ``until_`` times are since its session began."""
    before = sum(max(0.0, rank.get(name, 0.0)) for name in ("interpreter", "imports", "process_group"))
    return before + max(
        max(0.0, rank.get(name, 0.0)) for name in ("until_data", "until_build", "until_warm_up")
    )
