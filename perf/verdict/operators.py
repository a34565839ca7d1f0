"""Which operators and kernels of a step changed between two sides: profiles aligned by name. Pure.

A profiler slows what it watches, by the call: short operators look longer than they are, on both sides alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.contract import Operator

__all__ = ["OperatorChange", "operator_changes", "operators_in_words"]

TOLD = 4
"""Operators that a sentence names; the table behind it holds all that moved."""


@dataclass(frozen=True)
class OperatorChange:
    """One operator or kernel on two sides: calls and own seconds a step, 0 where a side does not have it."""

    name: str
    old: float
    new: float
    old_calls: float
    new_calls: float

    @property
    def seconds(self) -> float:
        """What the new side takes more, in seconds a step."""
        return self.new - self.old


def operator_changes(
    old: Sequence[Mapping[str, Operator]], new: Sequence[Mapping[str, Operator]]
) -> list[OperatorChange]:
    """Align two sides by name; what moved most comes first.

    Parameters
    ----------
    old, new
        What each side's profiled launches spent a step, by name. Seconds are a device's where any of them used one,
        else the host's: mixing the two would count a kernel and the call that launched it.

    Returns
    -------
    list of OperatorChange
        Medians over the launches of a side; empty where a side has no profile.
    """
    if not old or not new:
        return []
    on_device = any(found.device_seconds > 0.0 for launch in (*old, *new) for found in launch.values())
    names = dict.fromkeys(name for launch in (*old, *new) for name in launch)
    changes = []
    for name in names:
        seconds, calls = [], []
        for side in (old, new):
            found = [launch.get(name, _ABSENT) for launch in side]
            seconds.append(
                statistics.median(one.device_seconds if on_device else one.host_seconds for one in found)
            )
            calls.append(statistics.median(one.calls for one in found))
        if any(seconds):
            changes.append(OperatorChange(name, seconds[0], seconds[1], calls[0], calls[1]))
    return sorted(changes, key=lambda change: -abs(change.seconds))


_ABSENT = Operator(0.0, 0.0, 0.0)


def operators_in_words(changes: Sequence[OperatorChange]) -> str:
    """Name the operators that changed most, and those that only one side has; '' where none did."""
    parts = []
    for change in changes[:TOLD]:
        if change.seconds == 0.0:
            continue
        how = f"{change.old * 1e3:.3g} to {change.new * 1e3:.3g} ms a step"
        if not change.old_calls or not change.new_calls:
            how = f"{'new' if not change.old_calls else 'gone'}, {abs(change.seconds) * 1e3:.3g} ms a step"
        elif change.old_calls != change.new_calls:
            how += f", {change.old_calls:.3g} to {change.new_calls:.3g} calls"
        parts.append(f"{change.name} ({how})")
    return f"Operators that changed most: {', '.join(parts)}." if parts else ""
