from __future__ import annotations

import math

import pytest

from perf.verdict.decide import Question, decide
from perf.verdict.outcome import Verdict

AB = Question(zero=0.0, far=0.02, side=0.01)
LIMIT = Question(zero=0.5, far=0.5, side=None)
ZEROS = [0.0] * 16


def test_the_pass_look_allows_exactly_two_differences_at_the_margin():
    """At 5 a side two differences at the margin still pass, and three don't."""
    two = [0.0, 0.0, 0.0, 0.0, 0.02]
    base = [0.0, 0.0, 0.001, 0.001, 0.001]
    assert Verdict.PASS is decide(two, base, AB, 5).verdict
    assert Verdict.INCONCLUSIVE is decide(two, [0.0, 0.0, 0.0, 0.001, 0.001], AB, 5).verdict


def test_the_fail_look_allows_exactly_four_differences_at_zero():
    """At 10 a side four differences at no change still fail, and five don't."""
    new = [0.03, 0.03, 0.03, 0.03, 0.0, 0.03, 0.03, 0.03, 0.03, 0.03]
    base = [0.0] * 4 + [-0.02] * 6
    assert Verdict.FAIL is decide(new, base, AB, 10).verdict
    assert 10 == decide(new, base, AB, 10).launches
    assert Verdict.INCONCLUSIVE is decide(new, [0.0] * 5 + [-0.02] * 5, AB, 10).verdict


def test_an_estimate_on_half_the_margin_is_on_the_failing_side():
    """Half the margin itself belongs to the failing side: it may fail and never passes."""
    judged = decide([0.01] * 16, ZEROS, AB, 16)
    assert Verdict.FAIL is judged.verdict
    assert 7 == judged.launches
    below = decide([math.nextafter(0.01, 0.0)] * 16, ZEROS, AB, 16)
    assert Verdict.PASS is below.verdict


def test_a_fixed_limit_has_no_half_margin():
    """Against a limit a pass needs only the bound: just inside passes, just outside fails."""
    assert Verdict.PASS is decide([0.499] * 16, ZEROS, LIMIT, 16).verdict
    assert Verdict.FAIL is decide([0.501] * 16, ZEROS, LIMIT, 16).verdict


def test_a_fixed_limit_takes_sixteen_whenever_undecided():
    """On the limit itself all looks are taken and the answer is inconclusive, on either side of it."""
    for offset in (-0.01, 0.01):
        values = [0.5 + offset + (0.2 if place % 2 else -0.2) for place in range(16)]
        judged = decide(values, ZEROS, LIMIT, 16)
        assert Verdict.INCONCLUSIVE is judged.verdict
        assert 16 == judged.launches


@pytest.mark.parametrize(
    ("cap", "launches"), [(5, 5), (6, 5), (7, 7), (9, 7), (10, 10), (15, 10), (16, 16), (99, 16)]
)
def test_looks_beyond_the_cap_are_not_taken(cap, launches):
    """The last look is the last one that the cap affords."""
    # Grossly different at 5, not at 7, undecided at 10 and 16.
    new = [0.1] * 6 + [-0.2] * 10
    judged = decide(new, ZEROS, Question(zero=0.0, far=0.0, side=None), cap)
    assert Verdict.INCONCLUSIVE is judged.verdict
    assert launches == judged.launches


def test_no_launch_at_all_has_no_number():
    """Without any launch the numbers are nan, and the first look is wanted."""
    judged = decide([], ZEROS, AB, 16)
    assert judged.verdict is None
    assert 5 == judged.wants
    assert all(math.isnan(value) for value in (judged.estimate, judged.low, judged.high, judged.spread))
