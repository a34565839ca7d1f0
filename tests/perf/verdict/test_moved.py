from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_records import record

from perf.verdict.moved import Side, epoch_phases, moved_phase, moved_start, phases_of

USUAL = {
    "data": 0.001,
    "copy": 0.0,
    "forward": 0.003,
    "backward": 0.005,
    "communication": 0.001,
    "optimizer": 0.001,
}


def side(*ranks, warmup=20):
    """A side with one launch whose steps behind the warm-up have these phases."""
    phases = [{name: [9.0] * warmup + [seconds] * 10 for name, seconds in rank.items()} for rank in ranks]
    hosts = [f"n{number}" for number in range(len(ranks))]
    return Side("v", [], record(phase_seconds=phases, warmup_steps=warmup, host=hosts))


def test_warm_up_is_in_no_phase():
    """Medians are over the steps behind it; a launch without phases has none."""
    assert [{"data": 0.5}] == phases_of(side({"data": 0.5}).phases)
    assert [] == phases_of(None) == phases_of(record())


@pytest.mark.parametrize("phase", ["data", "copy", "forward", "backward", "optimizer"])
def test_the_phase_that_grew_is_named_with_both_sides(phase):
    """On one rank it is that rank's; what it took before stands beside it."""
    new = side({**USUAL, phase: USUAL[phase] + 0.05})
    moved = moved_phase(phases_of(new.phases), [USUAL], new)

    assert (phase, 0, "n0", False) == (moved.phase, moved.rank, moved.host, moved.late)
    assert pytest.approx((USUAL[phase] + 0.05, USUAL[phase])) == (moved.seconds, moved.before)


def test_a_phase_that_grew_on_all_ranks_is_no_single_ranks():
    """Communication that grew everywhere keeps nobody waiting for one of them."""
    new = side(*[{**USUAL, "communication": 0.05}] * 4)
    moved = moved_phase(phases_of(new.phases), [USUAL] * 4, new)

    assert ("communication", None) == (moved.phase, moved.rank)


@pytest.mark.parametrize("phase", ["data", "forward", "optimizer"])
@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_rank_that_others_wait_for_comes_before_their_waiting(phase, late):
    """The others' communication is the longest phase of all; what is named is the work that they wait for."""
    ranks = [{**USUAL, "communication": 0.05} for _ in range(3)]
    ranks[late] = {**USUAL, phase: USUAL[phase] + 0.05, "communication": 0.0}
    new = side(*ranks)
    moved = moved_phase(phases_of(new.phases), [USUAL], new)

    assert (phase, late, f"n{late}", True) == (moved.phase, moved.rank, moved.host, moved.late)
    assert pytest.approx(0.05) == moved.waited


def test_a_rank_that_is_slow_and_keeps_nobody_waiting_is_not_late():
    """Without anybody's wait in communication it is a phase like any other."""
    new = side(USUAL, {**USUAL, "forward": 0.06})
    moved = moved_phase(phases_of(new.phases), [USUAL], new)

    assert ("forward", 1, False) == (moved.phase, moved.rank, moved.late)


@given(st.lists(st.floats(0.001, 1.0), min_size=5, max_size=5))
def test_alone_it_is_the_longest_phase(seconds):
    """Without a side to hold it against nothing is called grown."""
    rank = dict(zip(("data", "copy", "forward", "backward", "optimizer"), seconds, strict=True))
    new = side(rank)
    moved = moved_phase(phases_of(new.phases), None, new)

    assert max(seconds) == pytest.approx(moved.seconds)
    assert moved.before is None


def test_without_phases_nothing_is_named():
    """Neither of a side that has none, nor against one that has none."""
    new = side(USUAL)
    assert moved_phase([], None, Side("v", [])) is None
    assert moved_phase(phases_of(new.phases), [], new) is None


def test_a_first_epoch_is_held_against_the_later_ones():
    """The steps of each are told apart by the batches that the epochs had."""
    from perf.contract import EpochRecord

    epochs = [[EpochRecord(index, 1.0, 3, 24, True, 0.1) for index in range(2)]]
    one = record(phase_seconds=[{"data": [0.4] * 3 + [0.1] * 3, "forward": [0.2] * 6}], epochs=epochs)

    assert [pytest.approx({"data": 0.4, "forward": 0.2})] == epoch_phases(one, first=True)
    assert [pytest.approx({"data": 0.1, "forward": 0.2})] == epoch_phases(one, first=False)
    assert [] == epoch_phases(record(phase_seconds=[{"data": [1.0]}], epochs=[[]]), first=True)


def test_a_start_is_told_by_its_own_times():
    """The median launch of each side counts, on its slowest rank, its first step of 0.1 s with it."""
    now, then = (
        [record(startup_seconds=[{"imports": s}]) for s in found] for found in ((9.0, 9.1, 60.0), (3.0,))
    )
    moved = moved_start(Side("new", now), Side("old", then))

    assert ("start-up", pytest.approx(9.2), pytest.approx(3.1)) == (moved.phase, moved.seconds, moved.before)
    assert moved_start(Side("new", now), None) is None
