"""Which phase of a step moved between two sides: from launches that were timed phase by phase. Pure.

Such launches synchronize after every phase, so their sum is longer than an undisturbed step, on both sides alike;
what is read here is where the difference lies, never how large the step is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.verdict.moved import NOT_MOVED
from perf.verdict.words import percent

__all__ = ["PhaseChange", "Phases", "moved_phases", "phase_changes", "phases_in_words", "slowest_rank"]

Phases = Mapping[str, Sequence[float]]
"""Seconds of each phase, one entry a step, of one rank."""


@dataclass(frozen=True)
class PhaseChange:
    """One phase on two sides: seconds a step, medians over the launches of each side.

    `clear` says that every launch of one side took longer in it than every launch of the other: with two launches a
    side that happens by chance in one case of three, so it only keeps out what the launches themselves contradict.
    """

    phase: str
    old: float
    new: float
    clear: bool

    @property
    def seconds(self) -> float:
        """What the new side takes more, in seconds a step; below 0 where it takes less."""
        return self.new - self.old


def slowest_rank(launch: Sequence[Phases]) -> dict[str, float]:
    """Return the median seconds of each phase on the rank whose phases sum to most; empty where none was timed.

    Parameters
    ----------
    launch
        ``phase_seconds`` of a launch record: one mapping a rank.
    """
    ranks = [{name: statistics.median(found) for name, found in rank.items() if found} for rank in launch]
    return max(ranks, key=lambda medians: sum(medians.values()), default={})


def phase_changes(old: Sequence[Sequence[Phases]], new: Sequence[Sequence[Phases]]) -> list[PhaseChange]:
    """Hold two sides' launches against each other, phase by phase; the phase that moved most comes first.

    Parameters
    ----------
    old, new
        ``phase_seconds`` of each side's launches. A phase that a launch lacks took no time there.

    Returns
    -------
    list of PhaseChange
        Empty where a side has no launch with phases.
    """
    sides = [[found for launch in side if (found := slowest_rank(launch))] for side in (old, new)]
    if not all(sides):
        return []
    names = dict.fromkeys(name for side in sides for launch in side for name in launch)
    changes = []
    for name in names:
        mine, theirs = ([launch.get(name, 0.0) for launch in side] for side in sides)
        clear = max(mine) < min(theirs) or max(theirs) < min(mine)
        changes.append(PhaseChange(name, statistics.median(mine), statistics.median(theirs), clear))
    return sorted(changes, key=lambda change: -abs(change.seconds))


def moved_phases(changes: Sequence[PhaseChange]) -> list[PhaseChange]:
    """Return the phases that clearly moved: by less than a hundredth of the step none tells where the time went."""
    base = sum(change.old for change in changes) or math.nan
    return [change for change in changes if change.clear and abs(change.seconds) > NOT_MOVED * base]


def phases_in_words(changes: Sequence[PhaseChange]) -> str:
    """Say where the difference lies: the phases that clearly moved, with the sum's own change; '' without phases."""
    if not changes:
        return ""
    whole = sum(change.seconds for change in changes)
    base = sum(change.old for change in changes) or math.nan
    moved = moved_phases(changes)
    told = f"timed phase by phase the step changed by {whole * 1e3:+.3g} ms ({percent(whole / base)})"
    if not moved:
        return f"No phase moved by more than the launches differ among themselves; {told}."
    parts = ", ".join(
        f"{change.phase} {change.seconds * 1e3:+.3g} ms ({change.old * 1e3:.3g} to {change.new * 1e3:.3g} ms)"
        for change in moved
    )
    return f"The phase that moved: {parts}; {told}."
