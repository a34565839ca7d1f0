from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from perf.verdict.quantiles import (
    chi_square_quantile,
    chi_square_tail,
    median_rank,
    student_t_quantile,
    student_t_tail,
)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 8, 9, 18, 30, 101])
@pytest.mark.parametrize("p", [1e-4, 2e-4, 0.01, 0.5, 0.8, 0.95, 0.99, 1 - 2e-4, 1 - 1e-4])
def test_t_quantile_equals_scipys(p, df):
    """The quantile agrees with scipy's to ten digits, at every level that the rules use."""
    assert pytest.approx(float(stats.t.ppf(p, df)), rel=1e-10, abs=1e-10) == student_t_quantile(p, df)


# Nearer to 0 scipy's tail is 0.5 to nine digits only: the square of t is lost beside df.
@given(st.floats(-50.0, 50.0).filter(lambda t: t == 0.0 or abs(t) > 1e-7), st.integers(1, 200))
def test_t_tail_equals_scipys(t, df):
    """The tail agrees with scipy's to within the rounding that its docstring states."""
    assert pytest.approx(float(stats.t.sf(t, df)), rel=1e-9, abs=2e-14) == student_t_tail(t, df)


@given(st.floats(-1.0, 1.0))
@example(3.5e-9)
def test_t_tail_of_one_degree_is_cauchys(t):
    """With one degree of freedom the tail is 1/2 - atan(t) / pi, next to 0 too."""
    assert pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-14) == student_t_tail(t, 1)


@given(st.floats(0.001, 0.999), st.integers(1, 60))
def test_quantile_and_tail_are_inverse(p, df):
    """The tail above the p-quantile is 1 - p."""
    assert pytest.approx(1.0 - p, rel=1e-9) == student_t_tail(student_t_quantile(p, df), df)


@given(st.floats(0.001, 0.999), st.integers(1, 60))
def test_quantile_is_odd(p, df):
    """Student's t is symmetric: the quantiles of p and 1 - p differ in sign only."""
    assert pytest.approx(-student_t_quantile(p, df), rel=1e-6, abs=1e-9) == student_t_quantile(1.0 - p, df)


@pytest.mark.parametrize(("p", "df"), [(0.0, 3), (1.0, 3), (float("nan"), 3), (1e-7, 3), (0.9, 0)])
def test_quantile_refuses_what_it_cannot_compute(p, df):
    """Probabilities outside the exact range, and no degrees of freedom, are errors."""
    with pytest.raises(ValueError, match=r"1e-6|degree of freedom"):
        student_t_quantile(p, df)


@pytest.mark.parametrize(
    ("n", "level", "rank"), [(5, 1 / 32, 1), (10, 1 / 32, 2), (16, 1 / 32, 4), (4, 1 / 32, 0)]
)
def test_median_rank_is_the_sign_tests(n, level, rank):
    """The rank is the largest whose binomial tail stays within the level, as scipy gives it."""
    assert rank == median_rank(n, level)
    assert level >= stats.binom.cdf(rank - 1, n, 0.5)
    assert level < stats.binom.cdf(rank, n, 0.5)


def test_median_rank_of_a_sure_level_is_all():
    """At level one every value bounds the median."""
    assert 3 == median_rank(3, 1.0)


@given(st.floats(0.0, 400.0), st.integers(1, 200))
def test_chi_square_tail_equals_scipys(x, df):
    """The tail agrees with scipy's, for odd and even degrees of freedom."""
    assert pytest.approx(float(stats.chi2.sf(x, df)), rel=1e-9, abs=1e-14) == chi_square_tail(x, df)


@given(st.floats(1e-4, 1 - 1e-4), st.integers(1, 200))
def test_chi_square_quantile_equals_scipys(p, df):
    """The quantile agrees with scipy's to nine digits."""
    assert pytest.approx(float(stats.chi2.ppf(p, df)), rel=1e-9) == chi_square_quantile(p, df)


@pytest.mark.parametrize(("p", "df"), [(0.0, 3), (1.0, 3), (0.5, 0)])
def test_chi_square_refuses_what_it_cannot_compute(p, df):
    """Probabilities outside the exact range, and no degrees of freedom, are errors."""
    with pytest.raises(ValueError, match=r"1e-6|degree of freedom"):
        chi_square_quantile(p, df)
