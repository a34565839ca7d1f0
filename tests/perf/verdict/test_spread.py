from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perf.verdict.outcome import Verdict
from perf.verdict.spread import halves_in_true_order, judge_same, spread_of

VALUES = st.lists(st.floats(1.0, 2.0), min_size=2, max_size=30)


@given(VALUES)
def test_spread_is_the_sd_of_the_logs_with_its_upper_bound(values):
    """The bound is scipy's chi-square bound, and the least margin three spreads."""
    found = spread_of(values)
    sd = statistics.stdev(math.log(value) for value in values)
    freedom = len(values) - 1
    assert (len(values), pytest.approx(sd), pytest.approx(3 * sd)) == (
        found.launches,
        found.sd,
        found.least_margin,
    )
    assert sd * math.sqrt(freedom / stats.chi2.ppf(0.05, freedom)) == pytest.approx(found.upper)


def test_one_launch_has_no_spread():
    """A spread needs two launches."""
    with pytest.raises(ValueError, match="two launches"):
        spread_of([1.0])


@given(VALUES)
def test_sides_are_dealt_in_true_order(values):
    """A B, B A: each pair gives one launch to each side, and nothing is lost but an odd last one."""
    first, second = halves_in_true_order(values)
    whole = len(values) - len(values) % 2
    assert whole // 2 == len(first) == len(second)
    assert sorted(values[:whole]) == sorted(first + second)
    pairs = zip(values[0:whole:2], values[1:whole:2], strict=True)
    dealt = [(b, a) if place % 2 else (a, b) for place, (a, b) in enumerate(zip(first, second, strict=True))]
    assert list(pairs) == dealt


def test_an_effect_of_the_order_is_seen():
    """Launches that are slow in every second place of the true order make A/A fail: that is what it is for."""
    # A B B A: side A is made of the places 0, 3, 4, 7 …
    slow = [1.10 if place % 4 in (1, 2) else 1.0 for place in range(32)]
    found = judge_same([value * (1 + place / 1e5) for place, value in enumerate(slow)], 0.02)
    assert found is not None
    assert Verdict.FAIL is found.verdict


def test_equal_launches_pass_and_too_few_are_not_judged():
    """Ten launches of one stack pass at a margin of three spreads; nine give no five a side."""
    values = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0, 1.001, 0.999, 1.002, 0.998]
    found = judge_same(values, 0.02)
    assert found is not None
    assert (Verdict.PASS, 5) == (found.verdict, found.launches)
    assert judge_same(values[:9], 0.02) is None
