"""Floors against a stored reference: what a rate must not fall below, and when that is a `fail`.

An occasion is a date on its own node. The floor is the centre of the occasions minus a tolerance that
their own spread gives, held up by a prior of 1.5 % with four degrees of freedom while occasions are few:

    c  = median over occasions of their median log rate
    s2 = [4 * 0.015**2 + (D - 1) * s_between**2] / (D + 3)
    T  = max(0.03, t(0.99, D + 3) * s * sqrt(1 + 1/D)),   floor = exp(c - T)

With a date sd of 0.5 %, a node sd of 1 % and D = 3, a confirmed false `fail` is rarer than 1 in 10,000
floors, and a loss of 5 / 8 / 10 % fails in 37 / 98 / 100 % (simulated, ``perf.verdict.simulate``).
A plain t interval at D = 2 would give a tolerance of 30-60 %: useless. Confirmation is in ``confirm``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from perf.verdict.inputs import positive_logs
from perf.verdict.quantiles import student_t_quantile

__all__ = ["Floor", "Occasion", "computed_tolerance", "floor_from"]

PRIOR_SPREAD = 0.015
"""Occasion-to-occasion sd (log) assumed before any is seen: twice a good cluster's node-and-date sd."""

PRIOR_FREEDOM = 4
"""Degrees of freedom of that assumption: as if five occasions had shown it."""

LEAST_TOLERANCE = 0.03
"""T is never below this (log): a reference can't bind closer than machines of one kind differ."""

LEVEL = 0.99
"""One-sided level of a single miss; a `fail` needs two (see ``perf.verdict.confirm``)."""

LAUNCHES_PER_OCCASION = 5
"""Launches that an occasion needs: fewer, and one disturbed launch moves its median."""


@dataclass(frozen=True)
class Occasion:
    """The launches of one date on one node.

    Attributes
    ----------
    date
        ISO date, for example '2026-11-02'; compared for equality and told in reasons.
    node
        Host name; '' if it is not known.
    rates
        Value of each launch, positive: samples per second, or whatever the reference's metric is.
    """

    date: str
    node: str
    rates: tuple[float, ...]


@dataclass(frozen=True)
class Floor:
    """A reference turned into a bound.

    Attributes
    ----------
    centre
        exp(c), in the unit of the rates.
    spread
        s, log units.
    tolerance
        T, log units.
    bound
        The floor exp(c - T); for a metric where lower is better the ceiling exp(c + T).
    occasions
        D.
    provisional
        Whether it rests on a single occasion, or may be another system's: a miss is then `inconclusive`.
    nodes
        The known nodes of the occasions.
    dates
        Their dates, sorted.
    higher_is_better
        False for times and bytes.
    """

    centre: float
    spread: float
    tolerance: float
    bound: float
    occasions: int
    provisional: bool
    nodes: frozenset[str]
    dates: tuple[str, ...]
    higher_is_better: bool = True

    def missed_by(self, value: float) -> bool:
        """Say whether `value` lies on the wrong side of the bound."""
        return value < self.bound if self.higher_is_better else value > self.bound


def floor_from(
    occasions: Sequence[Occasion],
    *,
    higher_is_better: bool = True,
    tolerance: float | None = None,
    least_launches: int = LAUNCHES_PER_OCCASION,
) -> Floor:
    """Turn the occasions of a reference into a floor.

    Parameters
    ----------
    occasions
        At least one; three or more make a good reference, one a provisional one.
    higher_is_better
        False for a metric like step time or bytes; the bound is then a ceiling.
    tolerance
        Relative loss that is allowed (0.05 for 5 %) where the reference file gives one with a reason;
        None computes T. It replaces T even where T would be larger.
    least_launches
        Launches an occasion must have. Only a replay of old tables, which hold one number an occasion, waives it.

    Raises
    ------
    ValueError
        If there is no occasion, one has too few launches, or a rate or the tolerance is out of range.
    """
    if not occasions:
        raise ValueError("a floor needs at least one occasion: a date on which the system was measured")
    if tolerance is not None and not 0.0 < tolerance < 1.0:
        raise ValueError(f"a tolerance is a relative loss between 0 and 1 (0.05 for 5 %), got {tolerance!r}")
    medians = []
    for occasion in occasions:
        where = f"the occasion of {occasion.date}" + (f" on {occasion.node}" if occasion.node else "")
        if len(occasion.rates) < max(1, least_launches):
            raise ValueError(
                f"{where} has {len(occasion.rates)} launches; a reference needs {max(1, least_launches)}"
            )
        medians.append(statistics.median(positive_logs(occasion.rates, where)))
    spread, computed = computed_tolerance(medians)
    allowed = computed if tolerance is None else -math.log1p(-tolerance)
    centre = statistics.median(medians)
    return Floor(
        centre=math.exp(centre),
        spread=spread,
        tolerance=allowed,
        bound=math.exp(centre - allowed if higher_is_better else centre + allowed),
        occasions=len(occasions),
        provisional=len(occasions) == 1,
        nodes=frozenset(occasion.node for occasion in occasions if occasion.node),
        dates=tuple(sorted({occasion.date for occasion in occasions})),
        higher_is_better=higher_is_better,
    )


def computed_tolerance(log_medians: Sequence[float]) -> tuple[float, float]:
    """Return s and T (log units) of occasions with these median log rates.

    T is 7.9 % with one occasion, mostly 5 to 6 % with two, and falls to 3 % as agreeing ones gather.
    """
    count = len(log_medians)
    squares = statistics.variance(log_medians) * (count - 1) if count > 1 else 0.0
    freedom = count - 1 + PRIOR_FREEDOM
    spread = math.sqrt((PRIOR_FREEDOM * PRIOR_SPREAD**2 + squares) / freedom)
    reach = student_t_quantile(LEVEL, freedom) * spread * math.sqrt(1.0 + 1.0 / count)
    return spread, max(LEAST_TOLERANCE, reach)
