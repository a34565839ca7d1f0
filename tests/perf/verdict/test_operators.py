"""Which operators of a step changed."""

from __future__ import annotations

import pytest

from perf.contract import Operator
from perf.verdict.operators import operator_changes, operators_in_words


def test_operators_are_aligned_by_name_and_the_largest_change_comes_first():
    """What one side does not have took no time there, and is said to be new or gone."""
    old = [
        {
            "conv": Operator(2, 0.010, 0.0),
            "add": Operator(5, 0.001, 0.0),
            "old_kernel": Operator(1, 0.002, 0.0),
        }
    ]
    new = [
        {
            "conv": Operator(2, 0.016, 0.0),
            "add": Operator(9, 0.0015, 0.0),
            "new_kernel": Operator(1, 0.001, 0.0),
        }
    ]
    changes = operator_changes(old, new)
    assert ["conv", "old_kernel", "new_kernel", "add"] == [change.name for change in changes]
    assert [0.006, -0.002, 0.001, 0.0005] == pytest.approx([change.seconds for change in changes])
    words = operators_in_words(changes)
    assert "conv (10 to 16 ms a step)" in words
    assert "old_kernel (gone, 2 ms a step)" in words
    assert "new_kernel (new, 1 ms a step)" in words
    assert "add (1 to 1.5 ms a step, 5 to 9 calls)" in words


def test_devices_times_are_compared_where_there_are_any():
    """The host's time of a call that launches a kernel is not the kernel's."""
    old, new = {"k": Operator(1, 0.5, 0.001)}, {"k": Operator(1, 0.1, 0.002)}
    (change,) = operator_changes([old], [new])
    assert 0.001 == pytest.approx(change.seconds)


def test_a_side_without_a_profile_gives_no_answer():
    """Absence is not a change."""
    assert [] == operator_changes([], [{"k": Operator(1, 1.0, 0.0)}])
    assert "" == operators_in_words([])
