from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.verdict.fixed import judge_at_least, judge_one_sample, judge_ratio, judge_share
from perf.verdict.outcome import Verdict

few = settings(max_examples=50)
launches = st.builds(
    lambda seed, sd: [math.exp(random.Random(seed + place).gauss(0.0, sd)) for place in range(16)],
    st.integers(0, 10**6),
    st.sampled_from([0.001, 0.01, 0.05]),
)


def steady(level: float, count: int = 16) -> list[float]:
    """Return launches that differ by a millionth, so that no two are equal."""
    return [level * (1.0 + place * 1e-6) for place in range(count)]


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.0, Verdict.PASS), (1.09, Verdict.PASS), (1.11, Verdict.FAIL), (2.0, Verdict.FAIL)],
)
def test_a_ratio_is_held_against_its_limit(ratio, verdict):
    """A ratio of step times passes below its limit and fails above it; numbers are ratios."""
    judgement = judge_ratio(steady(0.1 * ratio), steady(0.1), limit=1.1, cap=16)
    assert verdict is judgement.verdict
    assert pytest.approx(ratio, rel=1e-4) == judgement.estimate
    assert judgement.low <= judgement.estimate <= judgement.high
    assert 1.1 == judgement.limit


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(-0.01, Verdict.PASS), (0.05, Verdict.PASS), (0.15, Verdict.FAIL), (0.8, Verdict.FAIL)],
)
def test_a_share_is_one_minus_synthetic_over_full(share, verdict):
    """The loader's share is 1 - synthetic / full, unclipped, and held against its limit in shares."""
    judgement = judge_share(steady(0.1 * (1.0 - share)), steady(0.1), limit=0.1, cap=16)
    assert verdict is judgement.verdict
    assert pytest.approx(share, abs=1e-4) == judgement.estimate
    assert judgement.low <= judgement.estimate <= judgement.high
    assert 0.1 == judgement.limit


@pytest.mark.parametrize(("efficiency", "verdict"), [(0.95, Verdict.PASS), (0.8, Verdict.FAIL)])
def test_an_efficiency_must_be_at_least_its_limit(efficiency, verdict):
    """An efficiency passes above its limit and fails below it."""
    judgement = judge_at_least(steady(0.1 * efficiency), steady(0.1), limit=0.85, cap=16)
    assert verdict is judgement.verdict
    assert pytest.approx(efficiency, rel=1e-4) == judgement.estimate
    assert judgement.low <= judgement.estimate <= judgement.high


@few
@given(launches, launches, st.floats(0.7, 1.4), st.sampled_from([4, 5, 7, 10, 16]))
def test_at_least_is_the_mirror_of_at_most(one, other, limit, cap):
    """Numerator / denominator >= z is denominator / numerator <= 1 / z."""
    up = judge_at_least(one, other, limit=limit, cap=cap)
    down = judge_ratio(other, one, limit=1.0 / limit, cap=cap)
    assert up.launches == down.launches
    assert up.verdict is down.verdict
    assert pytest.approx(1.0 / up.estimate) == down.estimate
    assert pytest.approx((1.0 / up.high, 1.0 / up.low)) == (down.low, down.high)


@few
@given(launches, launches, st.floats(-0.2, 0.4), st.sampled_from([4, 5, 7, 10, 16]))
def test_a_share_is_a_ratio_told_otherwise(synthetic, full, limit, cap):
    """Share <= y is full / synthetic <= 1 / (1 - y), with the same launches and verdict."""
    share = judge_share(synthetic, full, limit=limit, cap=cap)
    ratio = judge_ratio(full, synthetic, limit=1.0 / (1.0 - limit), cap=cap)
    assert share.verdict is ratio.verdict
    assert share.launches == ratio.launches
    assert pytest.approx(1.0 - 1.0 / ratio.estimate, abs=1e-12) == share.estimate
    assert pytest.approx(1.0 - 1.0 / ratio.low, abs=1e-12) == share.low


@few
@given(launches, launches, st.floats(1.0, 1.3), st.sampled_from([5, 10, 16]))
def test_a_wider_limit_never_turns_pass_into_fail(one, other, factor, cap):
    """Loosening a limit keeps a pass a pass."""
    tight = judge_ratio(one, other, limit=1.02, cap=cap)
    loose = judge_ratio(one, other, limit=1.02 * factor, cap=cap)
    if tight.verdict is Verdict.PASS:
        assert Verdict.PASS is loose.verdict
    if loose.verdict is Verdict.FAIL:
        assert Verdict.PASS is not tight.verdict


def test_undecided_asks_for_launches_and_a_low_cap_does_not():
    """With too few launches for the next look it is open; where none is affordable, inconclusive with a reason."""
    noisy = [math.exp(random.Random(place).gauss(0.0, 0.1)) for place in range(16)]
    assert 10 == judge_ratio(noisy[:5], steady(1.0, 5), limit=1.0, cap=16).wants
    capped = judge_ratio(noisy[:5], steady(1.0, 5), limit=1.0, cap=5)
    assert Verdict.INCONCLUSIVE is capped.verdict
    assert "5 launches a side can only show that the limit is kept" in capped.reasons[0]
    below = judge_share(noisy, noisy, limit=0.1, cap=4)
    assert Verdict.INCONCLUSIVE is below.verdict
    assert "affords 4 launches" in below.reasons[0]


def test_a_gross_excess_at_a_cap_of_five_says_that_seven_answer():
    """All 5 far outside the limit are no fail yet; the reason says that 7 a side would answer."""
    judgement = judge_ratio(steady(2.0, 5), steady(1.0, 5), limit=1.1, cap=5)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert "7 a side would answer" in judgement.reasons[0]


def test_on_the_limit_the_reasons_say_that_it_is_too_close():
    """A healthy value on its limit can't be decided, and the reason says where to put a limit."""
    noisy = [
        [math.exp(random.Random(place + side).gauss(0.0, 0.05)) for place in range(16)] for side in (0, 99)
    ]
    judgement = judge_ratio(*noisy, limit=1.0, cap=16)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert "lie on both sides of the limit" in judgement.reasons[0]
    assert "least two of these away" in judgement.reasons[1]


def test_the_detectable_excess_is_told_in_the_unit_of_the_answer():
    """Ratios tell the relative excess, shares points of share, efficiencies the relative loss."""
    one = [math.exp(random.Random(place).gauss(0.0, 0.01)) for place in range(16)]
    other = [math.exp(random.Random(place + 50).gauss(0.0, 0.01)) for place in range(16)]
    excess = judge_ratio(one, other, limit=2.0, cap=16).detectable
    assert excess is not None
    share = judge_share(other, one, limit=0.5, cap=16).detectable
    loss = judge_at_least(other, one, limit=0.5, cap=16).detectable
    assert pytest.approx(0.5 * (1.0 - 1.0 / (1.0 + excess))) == share
    assert pytest.approx(1.0 - 1.0 / (1.0 + excess)) == loss


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_ratio_limit_is_refused(limit):
    """A limit of a ratio must be positive and finite."""
    for judge in (judge_ratio, judge_at_least):
        with pytest.raises(ValueError, match="limit"):
            judge([1.0], [1.0], limit=limit, cap=5)
    with pytest.raises(ValueError, match="limit"):
        judge_one_sample([1.0], limit=limit, cap=5)


def test_a_share_limit_of_one_is_refused():
    """A share can't reach 1, so a limit there says nothing."""
    with pytest.raises(ValueError, match="below 1"):
        judge_share([1.0], [1.0], limit=1.0, cap=5)


def test_bad_launch_values_are_named_by_their_side():
    """A bad step time names the mode it was measured in."""
    with pytest.raises(ValueError, match="the full mode, launch 1"):
        judge_share([1.0], [0.0], limit=0.1, cap=5)
    with pytest.raises(ValueError, match="the denominator, launch 2"):
        judge_ratio([1.0], [1.0, math.nan], limit=1.1, cap=5)
