"""Which steps of a side are slow, how regularly they come, and which phase holds them up. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.verdict.moved import COMMUNICATION, Side
from perf.verdict.stalls import STALL_FACTOR
from perf.verdict.words import percent

__all__ = ["SlowSteps", "slow_in_words", "slow_steps"]

EVEN = 0.25
"""Of the mean distance, its standard deviation: steps that are slow by chance have distances that spread by about 1."""

FEWEST_DISTANCES = 4
"""In a launch: fewer tell nothing about how regular they are."""

MOSTLY = 0.5
"""Of the extra time of slow steps: a phase that holds less of it is not the one that holds them up."""


@dataclass(frozen=True)
class SlowSteps:
    """The slow steps of a side, each above 1.5 medians of its launch.

    Attributes
    ----------
    share
        Of all steps: the median over the launches, on the rank that has most.
    medians
        What a slow step takes, in medians of its launch.
    every
        Steps from one to the next where they come evenly in most launches, else None.
    seconds
        Seconds from one to the next, likewise.
    phase, part
        The phase that holds most of their extra time, and its part of it; '' where no launch was timed phase by phase,
        or had slow steps, or the extra time lies in no one phase.
    rank, host
        Whose phase that is.
    """

    share: float
    medians: float
    every: float | None = None
    seconds: float | None = None
    phase: str = ""
    part: float = 0.0
    rank: int | None = None
    host: str = ""


def slow_steps(side: Side) -> SlowSteps:
    """Return what is known of a side's slow steps."""
    worst = [max(launch.step_seconds, key=lambda steps: len(_slow(steps))) for launch in side.launches]
    found = [(steps, _slow(steps)) for steps in worst if steps]
    medians = [steps[place] / statistics.median(steps) for steps, slow in found for place in slow]
    shares = [len(slow) / len(steps) for steps, slow in found]
    every, seconds = _evenly(found)
    held = _held_up(side.phases) if side.phases else None
    phase, part, rank, host = held or ("", 0.0, None, "")
    share, length = statistics.median(shares or [0.0]), statistics.median(medians or [0.0])
    return SlowSteps(share, length, every, seconds, phase, part, rank, host)


def slow_in_words(new: SlowSteps, before: SlowSteps | None) -> list[str]:
    """Return sentences that say how many slow steps there are, when they come, and which phase holds them up."""
    against = "" if before is None else f" ({percent(before.share)} on the other side)"
    told = [
        f"{percent(new.share)} of the steps are slow{against} and take {new.medians:.2g} of their launch's medians."
    ]
    if new.every is not None and new.seconds is not None:
        told.append(f"They come evenly, one every {new.every:.3g} steps ({new.seconds:.2g} s).")
    if new.phase:
        where = f"rank {new.rank} of {new.host}" if new.host else f"rank {new.rank}"
        told.append(
            f"Timed phase by phase, {percent(new.part)} of their extra time is in {new.phase}, on {where}."
        )
    return told


def _slow(steps: Sequence[float]) -> list[int]:
    """Return the places of slow steps."""
    threshold = STALL_FACTOR * statistics.median(steps) if steps else math.inf
    return [place for place, seconds in enumerate(steps) if seconds > threshold]


def _evenly(launches: Sequence[tuple[Sequence[float], Sequence[int]]]) -> tuple[float | None, float | None]:
    """Return steps and seconds from one slow step to the next where most launches have them evenly, and alike.

    Slow steps that follow each other are one. Launches with few of them tell nothing.
    """
    telling, even = 0, []
    for steps, slow in launches:
        first = [place for before, place in itertools.pairwise([-2, *slow]) if place != before + 1]
        distances = [after - before for before, after in itertools.pairwise(first)]
        if len(distances) < FEWEST_DISTANCES:
            continue
        telling += 1
        if statistics.pstdev(distances) <= EVEN * statistics.fmean(distances):
            seconds = math.fsum(steps[first[0] : first[-1]]) / len(distances)
            even.append((statistics.fmean(distances), seconds))
    means = [mean for mean, _ in even]
    if 2 * len(even) <= telling or statistics.pstdev(means) > EVEN * statistics.fmean(means):
        return None, None
    return statistics.fmean(means), statistics.fmean(seconds for _, seconds in even)


def _held_up(record: LaunchRecord) -> tuple[str, float, int, str] | None:
    """Return the phase and rank that hold up the slow steps of a launch, with its part of their extra time."""
    found: list[tuple[float, str, int]] = []
    total = 0.0
    for rank, phases in enumerate(record.phase_seconds or []):
        extras = _extra(phases, _settled(record, rank))
        total = max(total, math.fsum(extras.values()))
        found += [(seconds, phase, rank) for phase, seconds in extras.items()]
    # A rank that waits for another one does so in communication; the other one's own phase is to be named.
    found.sort(key=lambda one: (one[1] == COMMUNICATION, -one[0]))
    seconds, phase, rank = next((one for one in found if one[0] >= MOSTLY * total), (0.0, "", 0))
    if seconds <= 0.0:
        return None
    host = record.host[rank] if rank < len(record.host) else ""
    return phase, min(1.0, seconds / total), rank, host


def _settled(record: LaunchRecord, rank: int) -> list[int]:
    """Return the steps of a launch without those with which each epoch begins, as its loader fills its queue anew."""
    epochs = record.epochs[rank] if rank < len(record.epochs) else []
    lengths = [epoch.batches for epoch in epochs] or [
        record.total_steps[rank] if rank < len(record.total_steps) else 0
    ]
    begins = [0, *itertools.accumulate(lengths)]
    return [
        step for begin, end in itertools.pairwise(begins) for step in range(begin + record.warmup_steps, end)
    ]


def _extra(phases: Mapping[str, Sequence[float]], settled: Sequence[int]) -> dict[str, float]:
    """Return by how many seconds each phase exceeds its median in a rank's slow steps, all of them together."""
    steady = {
        name: found
        for name, seconds in phases.items()
        if (found := [seconds[step] for step in settled if step < len(seconds)])
    }
    slow = _slow([math.fsum(step) for step in zip(*steady.values(), strict=False)])
    return {
        name: math.fsum(seconds[place] - statistics.median(seconds) for place in slow)
        for name, seconds in steady.items()
    }
