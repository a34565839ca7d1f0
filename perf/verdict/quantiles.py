"""Quantiles that the rules need at run time, without scipy.

Tested against scipy in tests/perf/verdict/test_quantiles.py.
"""

from __future__ import annotations

import functools
import math

__all__ = ["chi_square_quantile", "chi_square_tail", "median_rank", "student_t_quantile", "student_t_tail"]


def student_t_tail(t: float, df: int) -> float:
    """Return P(T > t) of Student's t with a whole number of degrees of freedom.

    Uses the finite sums of Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and
    26.7.4: with theta = atan(t / sqrt(df)), P(|T| < t) is a polynomial in sin and cos of theta (plus
    theta itself for odd df). Exact up to rounding, which leaves about 1e-15 absolute: tails down to 1e-6
    are good to nine digits.

    Raises
    ------
    ValueError
        If `df` is below 1.
    """
    if df < 1:
        raise ValueError(f"Student's t needs at least 1 degree of freedom, got {df}")
    theta = math.atan2(t, math.sqrt(df))
    sine, cosine = math.sin(theta), math.cos(theta)
    square = cosine * cosine
    total, term = 0.0, cosine if df % 2 else 1.0
    for k in range(df % 2, df - 1, 2):  # the powers of the cosine: 1, 3, ..., df-2 or 0, 2, ..., df-2
        total += term
        term *= square * (k + 1) / (k + 2)
    inside = 2.0 / math.pi * (theta + sine * total) if df % 2 else sine * total
    return 0.5 * (1.0 - inside)


@functools.lru_cache(maxsize=256)
def student_t_quantile(p: float, df: int) -> float:
    """Return the p-quantile of Student's t: the value that T stays below with probability p.

    Bisection on `student_t_tail`, to the last digit that it carries.

    Parameters
    ----------
    p
        Probability, 1e-6 to 1 - 1e-6 (beyond that the tail has too few exact digits).
    df
        Degrees of freedom, whole, at least 1.

    Raises
    ------
    ValueError
        If `p` or `df` is out of range.
    """
    if not 1e-6 <= p <= 1.0 - 1e-6:
        raise ValueError(f"a t quantile is computed for probabilities from 1e-6 to 1 - 1e-6, got {p}")
    if p < 0.5:
        return -student_t_quantile(1.0 - p, df)
    low, high = 0.0, 1.0
    while student_t_tail(high, df) > 1.0 - p:
        low, high = high, 2.0 * high
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return middle
        low, high = (middle, high) if student_t_tail(middle, df) > 1.0 - p else (low, middle)


def chi_square_tail(x: float, df: int) -> float:
    """Return P(X > x) of a chi-square variable with a whole number of degrees of freedom.

    Uses the finite sums of Abramowitz and Stegun (1964), 26.4.4 and 26.4.5.

    Raises
    ------
    ValueError
        If `df` is below 1.
    """
    if df < 1:
        raise ValueError(f"chi-square needs at least 1 degree of freedom, got {df}")
    if x <= 0.0:
        return 1.0
    half = x / 2.0
    if df % 2:
        total, term, start = (
            math.erfc(math.sqrt(half)),
            math.exp(-half) * math.sqrt(4.0 * half / math.pi),
            1.5,
        )
        count = (df - 1) // 2
    else:
        total, term, start = 0.0, math.exp(-half), 1.0
        count = df // 2
    for k in range(count):
        total += term
        term *= half / (start + k)
    return total


@functools.lru_cache(maxsize=256)
def chi_square_quantile(p: float, df: int) -> float:
    """Return the p-quantile of a chi-square variable, by bisection on `chi_square_tail`.

    Raises
    ------
    ValueError
        If `p` or `df` is out of range.
    """
    if not 1e-6 <= p <= 1.0 - 1e-6:
        raise ValueError(
            f"a chi-square quantile is computed for probabilities from 1e-6 to 1 - 1e-6, got {p}"
        )
    low, high = 0.0, 1.0
    while chi_square_tail(high, df) > 1.0 - p:
        high *= 2.0
    # Each step halves the interval, until two neighbouring numbers are left.
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if chi_square_tail(middle, df) > 1.0 - p else (low, middle)
    return high


def median_rank(n: int, level: float) -> int:
    """Return the largest k for which the k-th of n sorted values bounds the median at this one-sided level.

    That is P(Binomial(n, 1/2) <= k - 1) <= level, the sign test; 0 if no value bounds it.
    """
    total, allowed = 0, level * 2**n
    for k in range(n):
        total += math.comb(n, k)
        if total > allowed:
            return k
    return n
