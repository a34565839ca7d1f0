"""What a step takes: medians, or means where a loader is waited for; one choice for all that is compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_records import record_of

from perf.catalogue import GROUPS
from perf.verdict.pace import WAITED, phase_time, step_time, step_times, waits

FULL, SYNTHETIC = (
    next(m for m in GROUPS["loader@mnist_cnn-cpu"].members if m.variant.mode == mode)
    for mode in ("full", "synthetic")
)


def launch(waited: float, *, member=FULL, compute: float = 0.1):
    """A window of 2 s and of steps of 0.1 s, of which one waits for all that is waited for."""
    steps = [compute] * 19 + [compute + 2.0 - 20 * compute]
    return record_of(
        member,
        compute,
        step_seconds=[steps],
        window_seconds=2.0,
        window_seconds_per_rank=[2.0],
        wait_seconds=[2.0 * waited],
    )


def test_medians_are_taken_where_little_is_waited_for():
    """A rare long step moves a mean, and no median."""
    assert [[0.1, 0.1], [0.1]] == step_times([launch(0.1), launch(0.24)], [launch(0.2)])


def test_all_sides_go_by_means_where_one_waits():
    """Means are held against means, also those of launches that wait less than the rest of their side."""
    waiting = [launch(0.5, compute=0.05), launch(0.2, compute=0.05), launch(0.4, compute=0.05)]
    fed = [launch(0.05), launch(0.05, member=SYNTHETIC)]

    assert [[0.1] * 3, [0.1] * 2] == step_times(waiting, fed)
    assert [[0.05] * 3] == step_times([launch(0.5, compute=0.05), *[launch(0.1, compute=0.05)] * 2])


@given(
    st.lists(st.floats(0.0, 0.9), min_size=1, max_size=7),
    st.lists(st.floats(0.0, 0.9), min_size=1, max_size=7),
)
def test_no_launch_is_held_by_its_mean_against_a_median(left, right):
    """Whatever each waits, on both sides of the border too."""
    sides = [[launch(share, compute=0.05) for share in side] for side in (left, right)]
    found = {step for side in step_times(*sides) for step in side}

    assert found in ({0.05}, {0.1})
    assert ({0.1} == found) is any(map(waits, sides))


def test_batches_that_are_there_are_never_waited_for():
    """Nothing was noted of them."""
    assert not waits([launch(0.9, member=SYNTHETIC)])
    assert not waits([])


def test_one_launch_is_told_by_itself():
    """By its mean step where it waits."""
    assert [0.05, 0.1] == [step_time(launch(share, compute=0.05)) for share in (WAITED, WAITED + 0.01)]


@pytest.mark.parametrize(("phase", "expected"), [("data", 0.25), ("forward", 0.0)])
def test_what_is_waited_for_data_is_a_mean(phase, expected):
    """Of four batches that come together three are not waited for."""
    assert expected == phase_time(phase, [0.0, 0.0, 0.0, 1.0])
