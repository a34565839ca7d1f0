"""When two sides of launches are looked at, and what each look asks of them.

All rules rest on the sorted pairwise differences d between the launches of two sides. With
continuous noise and no difference between the sides, the number of differences at or below zero
has the exact null distribution of Mann and Whitney (1947), whatever the shape of the noise, so
each rank below has an exact level. Hodges and Lehmann (1963): the median of d estimates the shift.

The levels of all looks add up over one judgement: a false ``fail`` 6.1e-5 (gross) + 6.5e-5 + 9.5e-5
= 2.2e-4; a wrong ``pass`` of a side that is worse by exactly the margin 1.6 + 1.8 + 0.9 = 4.3 %.
tests/perf/verdict/test_looks.py derives every level with scipy.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "FAIL_LOOKS",
    "FIRST_LOOK",
    "LOOKS",
    "Look",
    "grossly_different",
    "hodges_lehmann",
    "kth_largest",
    "kth_smallest",
    "null_counts",
    "pairwise_differences",
    "rank_for_level",
    "rank_level",
]


@dataclass(frozen=True)
class Look:
    """One planned look at two sides.

    Attributes
    ----------
    launches
        Launches a side; the first that many are used.
    fail_rank
        `fail` needs the fail_rank-th smallest difference above the limit; None: no fail by rank.
    pass_rank
        `pass` needs the pass_rank-th largest difference below the margin; None: no pass here.
    gross
        Whether this look exists only for a gross difference (see `grossly_different`).
    failing_side_only
        Whether a rule with a side (A/B: half the margin) takes this look only if the estimate is on the failing one.
    """

    launches: int
    fail_rank: int | None
    pass_rank: int | None
    gross: bool = False
    failing_side_only: bool = False


LOOKS: tuple[Look, ...] = (
    # 5 a side, pass only: at most 2 of 25 differences at or above the margin. Mann-Whitney: 4 of the
    # C(10,5) = 252 orders, 1.59 %. No fail: the best level that 5 against 5 can reach is 1/252 = 0.4 %,
    # twenty times the budget of a judgement.
    Look(5, fail_rank=None, pass_rank=3),
    # 7 a side, gross difference only: level at most 2**-14 = 6.1e-5. Two equally likely, distant values are the
    # worst noise: all 14 launches must fall in the cluster of their own side. Normal noise: below 1e-9.
    Look(7, fail_rank=None, pass_rank=None, gross=True),
    # 10 a side. fail: at most 4 of 100 differences at or below no change: 12 of C(20,10) = 184,756
    # orders, 6.5e-5 (one rank more would be 1.03e-4). pass: at most 22 of 100 at or above the margin: 1.77 %.
    Look(10, fail_rank=5, pass_rank=23),
    # 16 a side, only for what 10 left open. fail: at most 34 of 256: 9.5e-5. pass: at most 66 of 256: 0.95 %.
    Look(16, fail_rank=35, pass_rank=67, failing_side_only=True),
)

FAIL_LOOKS = tuple(look.launches for look in LOOKS if look.fail_rank is not None)
"""Looks at which a rank of the differences can fail; 7 can fail by a gross difference only."""

FIRST_LOOK = LOOKS[0].launches
"""Launches a side below which nothing is decided: 4 against 4 could exclude a margin by one order in 70 only."""


def pairwise_differences(worse: Sequence[float], better: Sequence[float]) -> list[float]:
    """Return all ``len(worse) * len(better)`` differences worse - better, sorted ascending."""
    return sorted(x - y for x in worse for y in better)


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate of the shift: the median of the pairwise differences."""
    return statistics.median(differences)


def kth_smallest(differences: Sequence[float], k: int) -> float:
    """Return d[k], the k-th smallest of the sorted `differences`; k counts from 1."""
    return differences[_position(differences, k) - 1]


def kth_largest(differences: Sequence[float], k: int) -> float:
    """Return d[-k], the k-th largest of the sorted `differences`; k counts from 1."""
    return differences[-_position(differences, k)]


def _position(differences: Sequence[float], k: int) -> int:
    if not 1 <= k <= len(differences):
        raise ValueError(f"rank {k} does not exist among {len(differences)} pairwise differences")
    return k


def grossly_different(worse: Sequence[float], better: Sequence[float], zero: float = 0.0) -> bool:
    """Say whether `worse` lies above `better` + `zero` by more than either side's own range.

    Source of the level: see the look at 7 launches in `LOOKS`.
    """
    gap = min(worse) - max(better) - zero
    return gap > 0.0 and gap > max(worse) - min(worse) and gap > max(better) - min(better)


def null_counts(m: int, n: int) -> list[int]:
    """Return how many of the C(m+n, m) orders give each value 0..m*n of Mann and Whitney's U.

    They are the coefficients of the Gaussian binomial, the product over i = 1..n of
    (1 - q**(m+i)) / (1 - q**i), in exact integers (Mann and Whitney 1947).
    """
    counts = [1]
    for i in range(1, n + 1):
        product = counts + [0] * (m + i)
        for power in range(len(product) - 1, m + i - 1, -1):
            product[power] -= product[power - m - i]
        for power in range(i, len(product)):
            product[power] += product[power - i]
        counts = product[: m * i + 1]
    return counts


@functools.lru_cache(maxsize=64)
def rank_level(m: int, n: int, k: int) -> float:
    """Return P(d[k] > 0) when the sides do not differ: the exact level of the bound d[k]."""
    return sum(null_counts(m, n)[:k]) / math.comb(m + n, m)


def rank_for_level(m: int, n: int, level: float) -> int:
    """Return the largest k for which d[k] has at most this level; 0 if even d[1] is above it."""
    allowed = level * math.comb(m + n, m)
    total = 0
    for k, count in enumerate(null_counts(m, n)):
        total += count
        if total > allowed:
            return k
    return m * n
