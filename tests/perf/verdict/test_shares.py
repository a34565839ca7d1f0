"""Shares of two stacks against each other."""

from __future__ import annotations

import pytest

from perf.verdict.outcome import Verdict
from perf.verdict.shares import compare_shares

OLD = [0.040, 0.041, 0.039, 0.042, 0.038]


@pytest.mark.parametrize(
    ("rise", "launches", "expected"),
    [(0.0, 5, Verdict.PASS), (0.1, 7, Verdict.FAIL), (-0.2, 5, Verdict.PASS)],
)
def test_a_rise_fails_and_a_fall_passes(rise, launches, expected):
    """The looks are those of step times; a share below zero is a share."""
    old = [*OLD, 0.0405, 0.0395][:launches]
    found = compare_shares([share + rise for share in old], old, margin=0.03, cap=16)
    assert expected == found.verdict
    assert rise == pytest.approx(found.estimate, abs=0.002)


def test_too_few_launches_ask_for_more():
    """Four a side decide nothing."""
    found = compare_shares(OLD[:4], OLD[:4], margin=0.03, cap=16)
    assert (None, 5) == (found.verdict, found.wants)


def test_one_launch_a_side_tells_no_bounds():
    """How far launches differ is not known from one, so the reason says what it would take and no range."""
    found = compare_shares(OLD[:1], OLD[:1], margin=0.03, cap=1)

    assert Verdict.INCONCLUSIVE is found.verdict
    assert ("This profile affords 1 launch a side; nothing is decided with fewer than 5.",) == found.reasons


def test_a_margin_is_above_zero():
    """A margin of nothing would fail on equal stacks."""
    with pytest.raises(ValueError, match="above 0"):
        compare_shares(OLD, OLD, margin=0.0, cap=16)
