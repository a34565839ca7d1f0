"""Where the wall time of a run went: starting, measuring and the rest, by group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.records import VerdictRecord

__all__ = ["Held", "Spent", "held", "held_for", "spent"]


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


@dataclass(frozen=True)
class Held:
    """GPU seconds: what launches held their GPUs for, which is what a site bills, and how much of it was timed."""

    seconds: float
    timed: float

    @property
    def share(self) -> float | None:
        """The timed part of what was held; None where no GPU was held."""
        return self.timed / self.seconds if self.seconds > 0.0 else None


def held(records: Iterable[LaunchRecord]) -> Held:
    """Return the GPU seconds of launches, from start to end, on all their GPUs."""
    seconds = timed = 0.0
    for launch in records:
        gpus = launch.gpus * launch.nodes
        seconds += gpus * launch.launch_seconds
        timed += gpus * min(launch.window_seconds, launch.launch_seconds)
    return Held(seconds, timed)


def held_for(verdict: VerdictRecord, records: Iterable[LaunchRecord]) -> Held:
    """Return the GPU seconds of the launches that a verdict rests on: its sides', and those added for it alone.

    A launch counts for every verdict that rests on it, so that the sum over verdicts is more than was held.
    """
    sides = {name.partition("@")[0].partition("+")[0] for name in (verdict.variant, verdict.against)}
    return held(
        launch
        for launch in records
        if launch.group == verdict.group
        and launch.variant in sides
        and launch.escalation in ("", verdict.test)
        and not launch.profiled
    )


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


def _start(launch: LaunchRecord) -> float:
    """Return the start-up of the slowest rank in seconds: everything that its record times before the warm-up."""
    return max((_startup_of(rank) for rank in launch.startup_seconds), default=0.0)


def _startup_of(rank: dict[str, float]) -> float:
    """Sum what a rank timed one after the other; its ``until_`` times are since its session began."""
    names = ("interpreter", "imports", "fork", "data", "devices", "process_group")
    before = sum(max(0.0, rank.get(name, 0.0)) for name in names)
    return before + max(
        max(0.0, rank.get(name, 0.0)) for name in ("until_data", "until_build", "until_warm_up")
    )
