from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.contract import Rate
from perf.verdict.rate_changes import rate_changes, rates_in_words


def rates(spread=0.01, **values):
    return {name: Rate(value, "1/s", spread=spread) for name, value in values.items()}


OLD = rates(matmul_bf16=100.0, python_loop=100.0, memory_copy=100.0)


def test_a_rate_that_fell_moved_with_a_step_that_is_slower():
    """One that rose explains nothing of it, and the other way round."""
    new = rates(matmul_bf16=80.0, python_loop=160.0, memory_copy=100.0)

    assert {"matmul_bf16": pytest.approx(-0.2)} == rate_changes(OLD, new, slower=True)
    assert {"python_loop": pytest.approx(0.6)} == rate_changes(OLD, new, slower=False)


def test_only_rates_that_the_moved_phase_rests_on_are_told():
    """An optimizer makes no matrix product, and a backward pass no loop of Python."""
    new = rates(matmul_bf16=80.0, python_loop=60.0, memory_copy=100.0)

    assert ["python_loop", "matmul_bf16"] == list(rate_changes(OLD, new, slower=True))
    assert ["python_loop"] == list(rate_changes(OLD, new, slower=True, phases=["optimizer"]))
    assert ["matmul_bf16"] == list(rate_changes(OLD, new, slower=True, phases=["backward"]))


def test_a_rate_within_its_own_spread_did_not_move():
    """Repetitions that spread by a quarter show no fall by 40 %; those that spread by a hundredth show one by 6 %."""
    assert {} == rate_changes(rates(0.25, a=100.0), rates(0.25, a=60.0), slower=True)
    assert {"a": pytest.approx(-0.06)} == rate_changes(rates(a=100.0), rates(a=94.0), slower=True)
    assert {} == rate_changes(rates(a=100.0), rates(a=96.0), slower=True)


@given(st.floats(1.0, 1e15), st.floats(1.0, 1e15), st.floats(0.0, 1.0))
def test_a_change_is_told_for_one_direction_at_most(old, new, spread):
    """No rate explains both a slower and a faster step; the change that is told is the quotient's."""
    slower, faster = (
        rate_changes(rates(spread, a=old), rates(spread, a=new), slower=way) for way in (True, False)
    )

    assert len(slower) + len(faster) <= 1
    assert all(pytest.approx(new / old - 1.0) == change for change in (*slower.values(), *faster.values()))


def test_a_rate_that_one_side_lacks_is_left_out():
    """Nothing is said of what was not measured on both sides."""
    assert {} == rate_changes({"a": Rate(None, "1/s", reason="no card")}, rates(a=1.0), slower=True)
    assert {} == rate_changes({}, rates(a=1.0), slower=True)


def test_the_sentence_says_what_moved_or_that_nothing_did():
    """At most four are named; that no launch of a side was fit is another sentence than that nothing moved."""
    assert "The machine's own rates moved the same way: a -20% (one launch a side)." == rates_in_words(
        {"a": -0.2}, ["a"]
    )
    assert 4 == rates_in_words(dict.fromkeys("abcdef", -0.2), "abcdef").count("%")
    assert "No rate of the machine itself moved the same way" in rates_in_words({}, ["a"])
    assert "could not be measured with both stacks" in rates_in_words({}, [])


def test_rates_that_a_phase_rests_on_and_nobody_measured_are_said_so():
    """One process measures no all-reduce: that it did not move is not known."""
    assert "None of the machine's own rates that communication rests on was measured." == rates_in_words(
        {}, ["matmul_fp32"], ["communication"]
    )
    assert "No rate" in rates_in_words({}, ["all_reduce_1m"], ["communication"])
