"""Nominates change points in months of results. Pure. History only nominates; a comparison in one allocation decides.

Two rules, each robust against what months hold:

* `level_changes`: three results in a row that all lie more than 2.5 robust standard deviations off those before
  them. A single slow night never nominates; that is what most of the false alarms of other detectors are.
* `incidents`: one result off both its neighbours, on the same day in several series of one system. Months with
  a handful of results have no three in a row, and what several workloads agree on is no noise of one.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["LEAST", "Nomination", "excursions", "incidents", "level_changes", "pooled_noise", "robust_sd"]

IN_A_ROW = 3
BEFORE = 20
"""Results before that a new one is held against: enough for a spread, and few enough to follow slow drifts."""

LEAST_BEFORE = 10
"""Fewer results have no spread worth the name: with 5, three of 200 series of plain noise were nominated, with slow
nights among them."""

DEVIATIONS = 2.5
"""Robust standard deviations: three in a row beyond them happen by chance once in millions of normal nights."""

LEAST = 0.02
"""Two per cent, or two points of a share: what a comparison would be asked for. Less is not worth its launches."""

SHARED = 0.25
"""Part of a day's series that must agree on an incident, and never fewer than two."""

TO_SIGMA = 1.4826
"""Makes the median absolute deviation of normal noise its standard deviation: 1 / 0.6745."""


@dataclass(frozen=True)
class Nomination:
    """A place in a series where something may have changed.

    `change` is on the series' own scale: a difference of logarithms, or of shares. `rule` is ``level`` or ``incident``.
    """

    place: int
    change: float
    rule: str


def robust_sd(values: Sequence[float]) -> float:
    """Return 1.4826 x the median absolute deviation from the median."""
    centre = statistics.median(values)
    return TO_SIGMA * statistics.median(abs(value - centre) for value in values)


def level_changes(values: Sequence[float], *, least: float = LEAST) -> list[Nomination]:
    """Return where a series moved to another level and stayed for three results.

    Parameters
    ----------
    values
        In the order of time, on a scale on which differences count (logarithms of a rate).
    least
        A smaller change is not nominated.
    """
    found = []
    begin, place = 0, LEAST_BEFORE
    while place + IN_A_ROW <= len(values):
        before = values[max(begin, place - BEFORE) : place]
        # The lower one of the two in the middle: as good a centre, and found in a third of the time.
        centre = sorted(before)[(len(before) - 1) // 2]
        row = [value - centre for value in values[place : place + IN_A_ROW]]
        # The spread is asked for only where it can matter: a series may have ten thousand results.
        beyond = min(row) > least or max(row) < -least
        if beyond and min(map(abs, row)) > DEVIATIONS * robust_sd(before):
            found.append(Nomination(place, statistics.median(row), "level"))
            # From here on the new level is what later results are held against.
            begin, place = place, place + LEAST_BEFORE
        else:
            place += 1
    return found


def excursions(values: Sequence[float]) -> list[float]:
    """Return by how much each result lies off both its neighbours: the smaller of the two, 0 at the ends.

    0 too where it lies between them: then it is part of a rise or a fall.
    """
    found = [0.0] * len(values)
    for place in range(1, len(values) - 1):
        before, after = values[place] - values[place - 1], values[place] - values[place + 1]
        if before * after > 0.0:
            found[place] = math.copysign(min(abs(before), abs(after)), before)
    return found


def pooled_noise(series: Iterable[Sequence[tuple[str, float]]]) -> float:
    """Return the robust standard deviation of a single result, from successive results of the same stack.

    Parameters
    ----------
    series
        Stack and value of each result, in the order of time. Differences across a change of stack are left out.
    """
    steps = [
        abs(after - before)
        for one in series
        for (old, before), (new, after) in itertools.pairwise(one)
        if old == new
    ]
    # A difference of two results spreads by the square root of 2 of one.
    return TO_SIGMA * statistics.median(steps) / math.sqrt(2.0) if steps else 0.0


def incidents(excursions_of_day: Sequence[float], noise: float, *, least: float = LEAST) -> list[int]:
    """Return which of a day's series show an incident together: their places in `excursions_of_day`; none if too few.

    Parameters
    ----------
    excursions_of_day
        Of every series of one system and quantity that has a result on that day.
    noise
        `pooled_noise` of them.
    """
    limit = max(DEVIATIONS * noise, least)
    for sign in (-1.0, 1.0):
        beyond = [place for place, value in enumerate(excursions_of_day) if sign * value > limit]
        if len(beyond) >= max(2, math.ceil(SHARED * len(excursions_of_day))):
            return beyond
    return []
