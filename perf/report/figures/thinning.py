"""Long traces made short without losing what stands out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Thinned", "share_out", "thin"]


@dataclass(frozen=True)
class Thinned:
    """What is drawn of a trace: places (from 0) and values, and how many neighbouring values share two points.

    `run` is 1 where every value is drawn.
    """

    places: list[int]
    values: list[float]
    run: int


def thin(values: Sequence[float], points: int) -> Thinned:
    """Draw a trace with at most `points` points (at least 4).

    A trace that is short enough stays whole. A longer one is cut into runs of equal length, and of each run the
    smallest and the largest value are kept, at their own places: so no stall is lost, and no mean is invented.
    """
    count = len(values)
    points = max(4, points)
    if count <= points:
        return Thinned(list(range(count)), list(values), 1)
    run = math.ceil(count / (points // 2))
    places: list[int] = []
    for start in range(0, count, run):
        part = range(start, min(start + run, count))
        low, high = min(part, key=values.__getitem__), max(part, key=values.__getitem__)
        places += sorted({low, high})
    return Thinned(places, [values[place] for place in places], run)


def share_out(budget: int, traces: int, least: int, most: int) -> int:
    """Return how many points each of `traces` traces may have so that all keep to `budget`, between two ends."""
    return min(most, max(least, budget // max(1, traces)))
