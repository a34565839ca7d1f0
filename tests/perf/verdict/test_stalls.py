from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.verdict.outcome import Verdict
from perf.verdict.stalls import compare_stalls, stall_share
from perf.verdict.trials import stall_trial

few = settings(max_examples=50)


def window(slow: int, steps: int = 400, factor: float = 3.0) -> list[float]:
    """Return step times of 10 ms, of which the last `slow` take `factor` times as long."""
    return [0.01] * (steps - slow) + [0.01 * factor] * slow


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (window(0), 0.0),
        (window(4), 0.01),
        (window(4, factor=1.5), 0.0),
        (window(4, factor=1.51), 0.01),
        (window(100), 0.25),
    ],
)
def test_the_share_counts_steps_above_one_and_a_half_medians(steps, expected):
    """A step is slow above, not at, 1.5 times the launch's median."""
    assert expected == stall_share(steps)


@few
@given(st.lists(st.floats(0.001, 0.1), min_size=5, max_size=60), st.floats(0.01, 100.0))
def test_the_share_has_no_unit(steps, scale):
    """Scaling all steps by a power of two leaves the share, and it lies between 0 and 1/2."""
    power = 2.0 ** round(math.log2(scale))
    assert stall_share(steps, least_steps=5) == stall_share([power * step for step in steps], least_steps=5)
    assert 0.0 <= stall_share(steps, least_steps=5) <= 0.5


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (window(0, 399), "400 steps, this launch has 399"),
        ([0.0] * 400, "positive"),
        ([math.nan] * 400, "launch 1"),
    ],
)
def test_a_window_that_is_too_short_or_wrong_is_refused(steps, words):
    """Too few steps, and step times that are not positive numbers, are errors."""
    with pytest.raises(ValueError, match=words):
        stall_share(steps)


@pytest.mark.parametrize(
    ("new", "base", "verdict", "launches"),
    [
        (0.0, 0.0, Verdict.PASS, 5),
        (0.0025, 0.0, Verdict.PASS, 5),
        (0.01, 0.0, Verdict.FAIL, 7),
        (0.05, 0.02, Verdict.FAIL, 7),
        (0.0, 0.05, Verdict.PASS, 5),
    ],
)
def test_shares_are_compared_by_the_same_looks(new, base, verdict, launches):
    """A rise of a point fails, one of a quarter point and a fall pass; numbers are differences of shares."""
    judgement = compare_stalls([new] * 16, [base] * 16, cap=16)
    assert verdict is judgement.verdict
    assert launches == judgement.launches
    assert pytest.approx(new - base) == judgement.estimate
    assert 0.01 == judgement.limit
    assert judgement.reasons


def test_bursts_are_named_in_the_reason():
    """Shares that differ widely from launch to launch are inconclusive, with a reason that says why."""
    base = [0.0, 0.08, 0.01, 0.0, 0.1, 0.0, 0.07, 0.0, 0.02, 0.09]
    judgement = compare_stalls([share + 0.001 for share in base], base, cap=10)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert "bursts" in judgement.reasons[1]


def test_caps_and_open_looks_are_told():
    """Below 5 nothing is decided; a gross rise at 5 asks for 7, or says that 7 would answer."""
    assert "fewer than 5" in compare_stalls([0.1] * 4, [0.0] * 4, cap=4).reasons[0]
    assert 7 == compare_stalls([0.1] * 5, [0.0] * 5, cap=16).wants
    assert "About 7 launches" in compare_stalls([0.1] * 5, [0.0] * 5, cap=5).reasons[1]


@pytest.mark.parametrize(
    ("new", "margin", "words"),
    [([1.2], 0.01, "between 0 and 1"), ([0.1], 0.0, "margin"), ([math.inf], 0.01, "launch 1")],
)
def test_bad_shares_and_margins_are_refused(new, margin, words):
    """A share outside 0 to 1, or a margin that is not positive, is an error."""
    with pytest.raises(ValueError, match=words):
        compare_stalls(new, [0.0], margin=margin, cap=5)


def test_four_hundred_steps_see_a_rise_that_a_hundred_do_not():
    """A rise from 0 to 1 % fails in 99.5 % of cases with 400 steps a launch, in 5 % with 100."""
    assert pytest.approx(0.995, abs=0.01) == stall_trial(0.0, 0.01, 4_000).fail
    assert pytest.approx(0.05, abs=0.02) == stall_trial(0.0, 0.01, 4_000, steps=100).fail


def test_unchanged_stalls_do_not_fail():
    """Unchanged stalls, steady or in bursts, fail in fewer than 1 of 2,000 judgements."""
    assert stall_trial(0.01, 0.01, 20_000).fail < 5e-4
    assert stall_trial(0.01, 0.01, 20_000, burst=0.5).fail < 5e-4
