"""Whether a launch's steps kept their length, from the first half of its window to the second.

A launch that drifts is kept, for throwing away slow launches would throw away regressions; it is flagged, and a side
of which too many drift is no basis for a verdict.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

__all__ = ["drift", "is_unsteady", "too_unsteady"]

PARTS = 8
"""Each half is cut into so many pieces; the halves differ beyond their own noise where no piece of one lies among
those of the other. By chance that happens to 2 of C(16, 8) = 12,870 steady windows."""

SMALLEST = 0.01
"""Log units. Half of the smallest margin that is judged (2 %): less drift than that moves no verdict."""

NOISES = 3.0
"""Where the system's launch-to-launch noise is known from calibration, a drift is beyond it above three of them."""

MOST_UNSTEADY = 0.5
"""Of a side's launches. With more, the middle launch itself is one that drifts."""


def drift(step_seconds: Sequence[float]) -> float | None:
    """Return by how much the second half's steps are longer than the first's, in log units; None if not known.

    Parameters
    ----------
    step_seconds
        Steps of one rank's window, in order. Fewer than two, or one that took no time or is no number, tell nothing.
    """
    middle = len(step_seconds) // 2
    # Not by the least of them: what is no number hides a 0 behind it from a minimum.
    if middle < 1 or not all(0.0 < step < math.inf for step in step_seconds):
        return None
    first, second = statistics.median(step_seconds[:middle]), statistics.median(step_seconds[-middle:])
    # Not the log of the quotient: that may be too small for a number.
    return math.log(second) - math.log(first)


def is_unsteady(step_seconds: Sequence[float], noise: float | None = None) -> bool:
    """Say whether a window's halves differ beyond noise.

    Parameters
    ----------
    step_seconds
        Steps of one rank's window, in order, in seconds. Fewer than 16 are never called unsteady.
    noise
        The system's calibrated launch-to-launch standard deviation in log units; None where there is none, and the
        steps' own scatter alone decides.
    """
    change = drift(step_seconds)
    middle = len(step_seconds) // 2
    if change is None or middle < PARTS:
        return False
    if abs(change) <= max(SMALLEST, NOISES * (noise or 0.0)):
        return False
    first, second = _pieces(step_seconds[:middle]), _pieces(step_seconds[-middle:])
    return max(first) < min(second) or max(second) < min(first)


def too_unsteady(flags: Sequence[bool]) -> bool:
    """Say whether too many of a side's launches drift for a verdict on it."""
    return bool(flags) and sum(flags) > MOST_UNSTEADY * len(flags)


def _pieces(steps: Sequence[float]) -> list[float]:
    edges = [round(part * len(steps) / PARTS) for part in range(PARTS + 1)]
    return [statistics.median(steps[begin:end]) for begin, end in itertools.pairwise(edges)]
