"""What a measurement could have seen, and how many launches would answer.

Simulated power at the printed change averages 95-97 %. A plug-in standard deviation would give
82-91 %, a median absolute deviation 64-84 %, hence the cautious factor.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perf.verdict.looks import LOOKS, rank_level

__all__ = [
    "answering_launches",
    "cautious_spread",
    "detectable_change",
    "pooled_spread",
]

# s+ / s: sqrt(df / chi-square quantile(0.2, df)) with df = 2 (n - 1), the upper 80 % bound of a standard
# deviation estimated from two sides of n launches.
SPREAD_FACTORS = {5: 1.32, 7: 1.24, 10: 1.18, 16: 1.13}

# Slowdown in units of the launch-level sd that fails with 95 % power, by the launches that can be afforded:
# 95.0, 95.3 and 96.1 % of simulated A/Bs with normal launches. (3.05 was planned for 10 launches: it
# fails in 89 %.) At 7 only a gross difference fails: gap + larger range of 7 against 7 normal launches has its 95 %
# point at 8.4, and 8.6 leaves 95 % when it is multiplied with an estimated sd.
POWER_FACTORS = ((16, 2.2), (10, 3.35), (7, 8.6))

# The estimate itself must reach half the margin: its sd at 10 launches a side is 0.46 s, and 1.1 s
# leaves it on the failing side 99 % of the time.
SIDE_FACTOR = 1.1


def pooled_spread(worse: Sequence[float], better: Sequence[float]) -> float:
    """Return the standard deviation of launches within their side; nan with fewer than two launches a side."""
    if min(len(worse), len(better)) < 2:
        return math.nan
    squares = 0.0
    for side in (worse, better):
        mean = math.fsum(side) / len(side)
        squares += math.fsum((value - mean) ** 2 for value in side)
    return math.sqrt(squares / (len(worse) + len(better) - 2))


def cautious_spread(spread: float, launches: int) -> float:
    """Return s+, the spread times the factor of the nearest look at or below `launches`."""
    known = [factor for n, factor in SPREAD_FACTORS.items() if n <= launches]
    return spread * (known[-1] if known else math.nan)


def detectable_change(spread: float, launches: int, *, margin: float, cap: int) -> float | None:
    """Return the smallest change that would have failed with at least 95 % power.

    max(c s+, M/2 + 1.1 s+), with c = 2.2 where 16 launches a side can be afforded, 3.35 where 10 can,
    8.6 where 7 can.

    Parameters
    ----------
    spread
        Pooled standard deviation of the launches, in the units of the answer (log, or share).
    launches
        Launches a side that it was estimated from.
    margin
        M in the same unit; 0 for a fixed limit, where the answer is the excess over the limit.
    cap
        Launches a side that could be afforded.

    Returns
    -------
    float or None
        None if `cap` allows no fail (below 7), or the spread is not known from at least 5 a side.
    """
    factor = next((c for n, c in POWER_FACTORS if cap >= n), None)
    cautious = cautious_spread(spread, launches)
    if factor is None or math.isnan(cautious):
        return None
    return max(factor * cautious, margin / 2.0 + SIDE_FACTOR * cautious)


def answering_launches(
    estimate: float,
    spread: float,
    after: int,
    *,
    zero: float,
    far: float,
    side: float | None,
) -> int | None:
    """Return the next look that would decide if estimate and spread stayed as they are; None if none would.

    A projection with normal launches, for a sentence in a report: never part of a verdict. Distances
    are in the units of `estimate`; `zero`, `far` and `side` as in ``perf.verdict.decide.Question``.
    """
    if math.isnan(estimate) or math.isnan(spread):
        return None
    # The Hodges-Lehmann estimate of two sides of n normal launches has an sd of s sqrt(2/n) / sqrt(3/pi).
    for look in LOOKS:
        n = look.launches
        if n <= after or look.gross or (look.failing_side_only and side is not None and estimate < side):
            continue
        sd = spread * math.sqrt(2.0 / n) / math.sqrt(3.0 / math.pi)
        below = estimate - _normal_bound(n, look.fail_rank) * sd
        above = estimate + _normal_bound(n, look.pass_rank) * sd
        if below > zero and (side is None or estimate >= side):
            return n
        if above < far and (side is None or estimate < side):
            return n
    return None


def _normal_bound(n: int, rank: int | None) -> float:
    """Return how many standard errors away the bound of this rank lies."""
    return math.inf if rank is None else -statistics.NormalDist().inv_cdf(rank_level(n, n, rank))
