"""Which phase of a step moved, and on which rank. Pure.

From launches with phases, which synchronize and are never judged: they tell where the time lies, not how much there is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.verdict.pace import phase_time
from perf.verdict.startup import start_parts

__all__ = [
    "COMMUNICATION",
    "NOT_MOVED",
    "Moved",
    "Side",
    "epoch_phases",
    "moved_phase",
    "moved_start",
    "phases_of",
]

COMMUNICATION = "communication"

OWN = ("data", "copy", "forward", "backward", "optimizer")
"""Phases of a rank's own work; what it waits for others in `COMMUNICATION` is theirs."""

NOT_MOVED = 0.01
"""Of a step. Launches of one stack differ by as much in a phase; by less no phase has moved."""

LATE_SHARE = 0.2
"""Of a step. A rank whose own work takes so much longer than the others' keeps them waiting; below it ranks that share
a node's cores differ anyway (up to 10 % on two cores that others used too)."""


@dataclass(frozen=True)
class Side:
    """One side: its judged launches, and one with phases where there is one."""

    name: str
    launches: Sequence[LaunchRecord]
    phases: LaunchRecord | None = None


@dataclass(frozen=True)
class Moved:
    """The phase that moved. Seconds are medians over the steps of one launch.

    `rank` is None where all ranks moved alike; `late` says that the others wait for it. `step` and `step_before`
    are sums of all phases.
    """

    phase: str
    rank: int | None
    host: str
    seconds: float
    before: float | None
    step: float
    late: bool = False
    waited: float = 0.0
    step_before: float | None = None

    @property
    def stayed(self) -> bool:
        """Whether even this phase, which grew most, did not by a hundredth of the step."""
        if self.before is None or self.late or self.phase == "start-up":
            return False
        return self.seconds - self.before < NOT_MOVED * self.step

    @property
    def grown(self) -> float:
        """By how much the sum of all phases grew, as a share of what it was."""
        return self.step / self.step_before - 1.0 if self.step_before else 0.0


def phases_of(record: LaunchRecord | None) -> list[dict[str, float]]:
    """Return what each phase of a step takes, rank by rank, behind the warm-up; nothing without phases."""
    if record is None or not record.phase_seconds:
        return []
    return [
        {
            name: phase_time(name, steady)
            for name, found in rank.items()
            if (steady := found[record.warmup_steps :])
        }
        for rank in record.phase_seconds
    ]


def epoch_phases(record: LaunchRecord | None, *, first: bool) -> list[dict[str, float]]:
    """Return the mean seconds of each phase in the first epoch, or in the later ones."""
    if record is None or not record.phase_seconds:
        return []
    found = []
    for rank, epochs in zip(record.phase_seconds, record.epochs, strict=False):
        if not epochs:
            return []
        end = epochs[0].batches
        parts = {name: seconds[:end] if first else seconds[end:] for name, seconds in rank.items()}
        found.append({name: statistics.fmean(part) for name, part in parts.items() if part})
    return found


def moved_phase(
    ranks: Sequence[Mapping[str, float]], before: Sequence[Mapping[str, float]] | None, side: Side
) -> Moved | None:
    """Return the phase that moved most, and the rank on which it did; None without phases.

    A rank that others wait for comes before their waiting. Without a side to hold it against it is the longest phase.
    """
    known = [rank for rank in ranks if rank]
    if not known or (before is not None and not any(before)):
        return None
    hosts = list(side.phases.host) if side.phases else []
    step = max(sum(rank.values()) for rank in known)
    late = _late_rank(ranks, step, hosts)
    if late is not None:
        return late
    names = list(dict.fromkeys(name for rank in known for name in rank))
    old = {
        name: statistics.median([rank.get(name, 0.0) for rank in before or [] if rank] or [0.0])
        for name in names
    }
    phase = max(names, key=lambda name: statistics.fmean(rank.get(name, 0.0) for rank in known) - old[name])
    worst = max(range(len(ranks)), key=lambda number: ranks[number].get(phase, 0.0))
    least = min(rank.get(phase, 0.0) for rank in known)
    alike = len(known) == 1 or ranks[worst].get(phase, 0.0) - least < LATE_SHARE * step
    return Moved(
        phase,
        None if alike and len(known) > 1 else worst,
        hosts[worst] if worst < len(hosts) else "",
        ranks[worst].get(phase, 0.0),
        None if before is None else old[phase],
        step,
        step_before=None if before is None else math.fsum(old.values()),
    )


def _late_rank(ranks: Sequence[Mapping[str, float]], step: float, hosts: Sequence[str]) -> Moved | None:
    """Return the rank whose own work keeps the others waiting, and the phase of it that does."""
    if len(ranks) < 2 or not all(ranks):
        return None
    own = [sum(rank.get(name, 0.0) for name in OWN) for rank in ranks]
    last = max(range(len(ranks)), key=own.__getitem__)
    others = [rank for number, rank in enumerate(ranks) if number != last]
    ahead = own[last] - statistics.median(sum(rank.get(name, 0.0) for name in OWN) for rank in others)
    waited = statistics.median(rank.get(COMMUNICATION, 0.0) for rank in others)
    if ahead < LATE_SHARE * step or waited - ranks[last].get(COMMUNICATION, 0.0) < ahead / 2:
        return None
    usual = {name: statistics.median(rank.get(name, 0.0) for rank in others) for name in OWN}
    phase = max(OWN, key=lambda name: ranks[last].get(name, 0.0) - usual[name])
    host = hosts[last] if last < len(hosts) else ""
    return Moved(phase, last, host, ranks[last].get(phase, 0.0), usual[phase], step, late=True, waited=waited)


def moved_start(new: Side, base: Side | None) -> Moved | None:
    """Return the start-up as what moved: seconds to the first step's end, on the slowest rank of a median launch."""

    def total(record: LaunchRecord) -> float:
        parts = max((sum(start_parts(rank).values()) for rank in record.startup_seconds), default=0.0)
        return parts + (record.first_step_seconds or 0.0)

    if not new.launches or base is None or not base.launches:
        return None
    now, then = (sorted(side.launches, key=total)[len(side.launches) // 2] for side in (new, base))
    parts = [start_parts(rank) for rank in now.startup_seconds]
    worst = max(range(len(parts)), key=lambda number: sum(parts[number].values()), default=None)
    if worst is None:
        return None
    alone = len(parts) == 1
    host = now.host[worst] if worst < len(now.host) else ""
    return Moved("start-up", worst if alone else None, host, total(now), total(then), total(now))
