"""Which steps of a side are slow, how regularly they come, and which phase holds them up. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
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
        Steps from one to the next where they come evenly, else None.
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
    distances = [distance for steps, slow in found for distance in _distances(steps, slow)]
    held = _held_up(side.phases) if side.phases else None
    phase, part, rank, host = held or ("", 0.0, None, "")
    every = seconds = None
    if distances:
        every = statistics.fmean(steps for steps, _ in distances)
        seconds = statistics.fmean(s for _, s in distances)
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


def _distances(steps: Sequence[float], slow: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Yield steps and seconds from each slow step of a launch to the next, if they come evenly."""
    distances = [after - before for before, after in itertools.pairwise(slow)]
    if len(distances) < FEWEST_DISTANCES or statistics.pstdev(distances) > EVEN * statistics.fmean(distances):
        return
    for before, after in itertools.pairwise(slow):
        yield after - before, math.fsum(steps[before:after])


def _held_up(record: LaunchRecord) -> tuple[str, float, int, str] | None:
    """Return the phase and rank that hold up the slow steps of a launch, with its part of their extra time."""
    found: list[tuple[float, str, int]] = []
    total = 0.0
    for rank, phases in enumerate(record.phase_seconds or []):
        extras = _extra(phases, record.warmup_steps)
        total = max(total, math.fsum(extras.values()))
        found += [(seconds, phase, rank) for phase, seconds in extras.items()]
    # A rank that waits for another one does so in communication; the other one's own phase is to be named.
    found.sort(key=lambda one: (one[1] == COMMUNICATION, -one[0]))
    seconds, phase, rank = next((one for one in found if one[0] >= MOSTLY * total), (0.0, "", 0))
    if seconds <= 0.0:
        return None
    host = record.host[rank] if rank < len(record.host) else ""
    return phase, min(1.0, seconds / total), rank, host


def _extra(phases: Mapping[str, Sequence[float]], warmup: int) -> dict[str, float]:
    """Return by how many seconds each phase exceeds its median in a rank's slow steps, all of them together."""
    steady = {name: list(seconds[warmup:]) for name, seconds in phases.items() if seconds[warmup:]}
    slow = _slow([math.fsum(step) for step in zip(*steady.values(), strict=False)])
    return {
        name: math.fsum(seconds[place] - statistics.median(seconds) for place in slow)
        for name, seconds in steady.items()
    }
