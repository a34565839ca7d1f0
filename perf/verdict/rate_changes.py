"""Which of a machine's own rates moved with a step, between two sides that each measured them once. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from perf.contract import Rate
from perf.verdict.diagnosis import RATE_MOVED, RATES_OF
from perf.verdict.words import percent

__all__ = ["rate_changes", "rates_in_words"]

SPREADS = 2.0
"""Of both sides' repetitions together. A host's rates spread by a quarter where others use its cores: one launch a side
then shows no change of half."""

TOLD = 4


def rate_changes(
    old: Mapping[str, Rate], new: Mapping[str, Rate], *, slower: bool, phases: Collection[str] = ()
) -> dict[str, float]:
    """Return the rates that moved with the step, those that moved most first.

    Parameters
    ----------
    old, new
        Rates of each side's launch.
    slower
        Whether the new side's step is: a rate that rose explains nothing of it. The other way round where it is faster.
    phases
        Those that moved: only rates that they rest on count. Where none is named, all do.

    Returns
    -------
    dict of str to float
        Relative change by name; below 0 where the new side's rate is lower.
    """
    resting = _resting(phases)
    found: dict[str, float] = {}
    for name in old.keys() & new.keys():
        before, after = old[name], new[name]
        if not before.value or not after.value or (resting and not name.startswith(resting)):
            continue
        change = math.log(after.value / before.value)
        own = SPREADS * math.hypot(before.spread or 0.0, after.spread or 0.0)
        if (change < 0.0) is slower and abs(math.expm1(change)) > RATE_MOVED and abs(change) > own:
            found[name] = math.expm1(change)
    return dict(sorted(found.items(), key=lambda one: (-abs(one[1]), one[0])))


def rates_in_words(
    changes: Mapping[str, float], measured: Collection[str], phases: Collection[str] = ()
) -> str:
    """Say which rates moved the same way, or that none did.

    Parameters
    ----------
    changes
        From `rate_changes`.
    measured
        Names of the rates that both sides have; none: they could not be measured.
    phases
        As for `rate_changes`.
    """
    if not measured:
        return "The machine's own rates could not be measured with both stacks."
    resting = _resting(phases)
    if resting and not any(name.startswith(resting) for name in measured):
        return f"None of the machine's own rates that {' and '.join(phases)} rests on was measured."
    if not changes:
        return (
            f"No rate of the machine itself moved the same way by more than {percent(RATE_MOVED)} and than it spreads "
            "(one launch a side)."
        )
    told = ", ".join(f"{name} {change:+.0%}" for name, change in list(changes.items())[:TOLD])
    return f"The machine's own rates moved the same way: {told} (one launch a side)."


def _resting(phases: Collection[str]) -> tuple[str, ...]:
    """Return how the names of the rates begin that phases rest on."""
    return tuple(start for phase in phases for start in RATES_OF.get(phase, ()))
