from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perf.verdict.comparison import compare
from perf.verdict.detectable import (
    SPREAD_FACTORS,
    answering_launches,
    cautious_spread,
    detectable_change,
    pooled_spread,
)
from perf.verdict.trials import ab_trial, noise, printed_power

few = settings(max_examples=50)


@pytest.mark.parametrize(("launches", "factor"), list(SPREAD_FACTORS.items()))
def test_spread_factors_are_the_80_percent_bound_of_an_sd(launches, factor):
    """s+ is the upper 80 % bound of the pooled sd with 2 (n - 1) degrees of freedom."""
    freedom = 2 * (launches - 1)
    assert pytest.approx(factor, abs=0.006) == math.sqrt(freedom / stats.chi2.ppf(0.2, freedom))


@pytest.mark.parametrize(
    ("cap", "spread", "expected"),
    [
        (16, 0.01, 2.2 * 1.18 * 0.01),
        (16, 0.001, 0.01 + 1.1 * 1.18 * 0.001),
        (10, 0.01, 3.35 * 1.18 * 0.01),
        (7, 0.01, 8.6 * 1.18 * 0.01),
        (6, 0.01, None),
        (5, 0.01, None),
    ],
)
def test_the_printed_change_follows_its_formula(cap, spread, expected):
    """max(c s+, M/2 + 1.1 s+), with c by what can be afforded; none where nothing can fail."""
    printed = detectable_change(spread, 10, margin=0.02, cap=cap)
    assert expected == printed if expected is None else pytest.approx(expected) == printed


def test_an_unknown_spread_prints_nothing():
    """With fewer than 5 launches a side no change is printed."""
    assert detectable_change(0.01, 4, margin=0.02, cap=16) is None
    assert detectable_change(math.nan, 0, margin=0.02, cap=16) is None
    assert math.isnan(pooled_spread([1.0], [1.0, 2.0]))
    assert math.isnan(cautious_spread(0.01, 3))


@few
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=16),
    st.floats(-5, 5),
    st.lists(st.floats(-1, 1), min_size=2, max_size=16),
)
def test_pooled_spread_ignores_the_shift_between_sides(one, shift, other):
    """The spread is within the sides: shifting one side leaves it as it is."""
    assert pytest.approx(pooled_spread(one, other), abs=1e-9) == pooled_spread(
        [x + shift for x in one], other
    )


@pytest.mark.parametrize(("cap", "factor"), [(16, 2.2), (10, 3.35)])
def test_a_slowdown_of_the_power_factor_fails_95_times_of_100(cap, factor):
    """With normal launches, a slowdown of c sds fails in 95 % where half the margin is small beside it."""
    (rates,) = ab_trial(noise("clean"), 0.02, (math.expm1(factor * 0.02),), 8_000, cap=cap)
    assert 0.94 < rates.fail < 0.965


def test_a_gross_slowdown_of_the_power_factor_fails_at_seven():
    """Where only 7 launches can be afforded, a slowdown of 8.6 sds fails in 95 %."""
    (rates,) = ab_trial(noise("clean"), 0.02, (math.expm1(8.6 * 0.02),), 8_000, cap=7)
    assert 0.945 < rates.fail < 0.97


@pytest.mark.parametrize("sd", [0.003, 0.008])
def test_the_power_at_the_printed_change_is_what_is_promised(sd):
    """Averaged over A/Bs, the rules fail a slowdown of the printed size in 94 to 99 %."""
    assert 0.94 < printed_power(sd, 3_000) < 0.99


def test_the_judgement_prints_a_relative_change():
    """A judgement's detectable change is relative, not a logarithm."""
    new = [0.1 * math.exp(0.01 * place) for place in (0, 3, 1, 2, 4)]
    judgement = compare(new, new, margin=0.5, cap=16)
    spread = pooled_spread(*[[math.log(x) for x in new]] * 2)
    expected = math.expm1(max(2.2 * 1.32 * spread, math.log(1.5) / 2 + 1.1 * 1.32 * spread))
    assert pytest.approx(expected) == judgement.detectable


@pytest.mark.parametrize(
    ("estimate", "spread", "after", "side", "expected"),
    [
        (0.05, 0.005, 5, 0.01, 10),  # clearly slower: 10 shows it
        (0.02, 0.0125, 5, 0.01, 16),  # slower by 1.6 sds: 16 shows it
        (0.0, 0.005, 0, 0.01, 5),  # unchanged and quiet: 5 excludes the margin
        (0.0, 0.05, 10, 0.01, None),  # not on the failing side: 16 are not taken
        (0.02, 0.05, 16, 0.01, None),
        (0.5, 0.005, 10, None, 16),
        (math.nan, math.nan, 0, 0.01, None),
    ],
)
def test_the_number_that_would_answer_is_projected(estimate, spread, after, side, expected):
    """The next look that would decide is named, if any would, were estimate and spread to stay."""
    assert expected == answering_launches(estimate, spread, after, zero=0.0, far=0.02, side=side)
