from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.contract import EpochRecord
from perf.launch.validity import (
    OVERSUBSCRIBED,
    cores_by_host,
    cores_needed,
    flags_of,
    reasons_of,
    unfit_of,
)


@pytest.fixture(scope="session")
def reasons(make_spec, make_rank):
    """Return a function that gives the reasons against a launch whose rank 1 has these fields."""

    def reasons(spec_changes=None, **changes):
        return reasons_of(make_spec(**(spec_changes or {})), [make_rank(0), make_rank(1, **changes)])

    return reasons


def test_a_plain_launch_is_fit(reasons):
    """Without a fact against it a launch is judged."""
    assert [] == reasons()


def test_steps_that_do_not_fill_their_window_are_told_with_both_sums(reasons):
    """A window of twice its steps holds time that no step accounts for."""
    expected = "The steps of rank 1 sum to 0.04 s, their window took 0.08 s: 50.0% apart, allowed is 1%."
    assert [expected] == reasons(window_seconds=0.08)


@given(st.floats(0.1, 100.0), st.floats(-0.05, 0.05), st.integers(1, 9))
def test_one_percent_divides_fit_from_unfit(reasons, window, off, epochs):
    """Steps may miss their window by one percent, and by the cost of opening it once an epoch."""
    edge = 0.0005 * epochs
    found = reasons(
        step_seconds=[window * (1 + off) / 4] * 4,
        window_seconds=window,
        epochs=[EpochRecord(0, 1.0, 6, 384, False, 0.1)] * epochs,
    )
    said = [reason for reason in found if reason.startswith("The steps of rank 1")]
    if abs(off) * window <= 0.01 * window + 0.99 * edge:
        assert [] == said
    if abs(off) * window > 0.01 * window + 1.01 * edge:
        assert 1 == len(said)


def test_a_window_without_steps_is_unfit_only_if_some_were_asked_for(reasons):
    """An audit of epochs has no window to miss."""
    assert "Rank 1 timed no step; 4 were asked for." in reasons(step_seconds=[], window_seconds=0.0)
    assert not [
        r for r in reasons({"timed_steps": 0}, step_seconds=[], window_seconds=0.0) if "timed no step" in r
    ]


@pytest.mark.parametrize(
    ("steps", "window"), [([0.01] * 4, 0.0), ([0.01] * 4, -1.0), ([-0.01, 0.02, 0.02, 0.01], 0.04)]
)
def test_times_that_are_not_positive_are_unfit(reasons, steps, window):
    """A clock that runs backwards measured nothing."""
    assert any(
        "times must be positive" in reason for reason in reasons(step_seconds=steps, window_seconds=window)
    )


def test_allocator_retries_are_told_with_device_and_count(reasons):
    """A retry stalls the step that it falls in."""
    (reason,) = reasons(allocator_retries={"cuda:0": 0, "cuda:1": 3})
    assert "rank 1 freed its cache and tried again 3 times on cuda:1" in reason


def test_two_ranks_on_one_gpu_are_told_with_its_uuid(make_spec, make_rank):
    """Sharing a card halves both; on two hosts equal ids are different cards, and unknown ids say nothing."""
    ranks = [make_rank(rank, gpu_uuids=["GPU-1"]) for rank in range(2)]
    assert ["Ranks 0 and 1 on n1 share the GPU GPU-1; each must have one of its own."] == unfit_of(
        make_spec(), ranks
    )
    apart = [make_rank(rank, gpu_uuids=["GPU-1"], host=f"n{rank}") for rank in range(2)]
    assert [] == unfit_of(make_spec(), apart)
    unknown = [make_rank(rank, gpu_uuids=[None]) for rank in range(2)]
    assert [] == unfit_of(make_spec(), unknown)


def test_one_rank_that_uses_a_gpu_twice_is_told(make_spec, make_rank):
    """DataParallel over twice the same card is no two-GPU run."""
    spec = make_spec(strategy="dp", ranks_per_node=1, gpus=2)
    assert ["Rank 0 on n1 uses the GPU GPU-1 2 times."] == unfit_of(
        spec, [make_rank(0, world_size=1, gpu_uuids=["GPU-1", "GPU-1"])]
    )


def test_fewer_cores_than_promised_are_told_with_the_numbers(make_spec, make_rank):
    """A default variant was made for the cores that were promised."""
    ranks = [make_rank(rank, threads={"cores_allowed": 3}) for rank in range(2)]
    (reason,) = unfit_of(make_spec(), ranks)
    assert (
        "4 cores were promised on n1 (threads of 2 ranks and loader workers need 4), but the ranks may use 3. "
        "Look for a binding that cuts them (taskset, srun --cpu-bind, a cpuset)." == reason
    )
    # It did not ask for more than there is: it was given less than it was promised.
    assert [] == flags_of(make_spec(), ranks)


def test_an_explicitly_larger_variant_is_flagged_and_not_unfit(make_spec, make_rank):
    """Whoever asks for more workers than cores gets them, marked."""
    ranks = [make_rank(rank, threads={"cores_allowed": 3}) for rank in range(2)]
    spec = make_spec(workers=8)
    assert ([], [OVERSUBSCRIBED]) == (unfit_of(spec, ranks), flags_of(spec, ranks))


def test_a_launch_that_fits_its_cores_has_no_flag(make_spec, make_rank):
    """As many as allowed is not too many."""
    assert [] == flags_of(make_spec(), [make_rank(rank) for rank in range(2)])


@pytest.mark.parametrize(
    ("cores", "expected"), [(4, []), (8, []), (10, []), (11, ["idle cores"]), (20, ["idle cores"])]
)
def test_a_number_of_workers_that_ignores_its_cores_is_flagged(make_spec, make_rank, cores, expected):
    """Source 004 always starts 4 workers: where more than half of the cores do nothing, that is said."""
    spec = make_spec(strategy="single", backend="none", ranks_per_node=1, cores=cores, threads=1, workers=4)
    flags = flags_of(spec, [make_rank(0, threads={"cores_allowed": cores})])

    assert expected == [flag for flag in flags if flag != OVERSUBSCRIBED]


def test_workers_that_the_suite_held_back_leave_no_core_idle_by_mistake(make_spec, make_rank):
    """Short epochs have fewer workers than the cores would feed: nobody wrote their number down once."""
    spec = make_spec(strategy="single", ranks_per_node=1, cores=16, threads=1, workers=2, workers_held=True)

    assert [] == flags_of(spec, [make_rank(0, threads={"cores_allowed": 16})])


@pytest.mark.parametrize(
    ("others", "waited", "expected"),
    [(28.0, 12.5, ["crowded"]), (28.0, 0.1, []), (0.4, 12.5, []), (None, 12.5, []), (28.0, None, [])],
)
def test_a_launch_beside_others_on_its_cores_is_flagged(make_spec, make_rank, others, waited, expected):
    """Others took cores that it needed, and somebody waited for one; either alone says nothing."""
    node = {"other_cpu_seconds": others, "pressure_seconds": {"cpu": waited}}
    telemetry = {"window_seconds": 20.0, "nodes": [node]}
    ranks = [make_rank(rank) for rank in range(2)]
    assert (expected, []) == (
        flags_of(make_spec(), ranks, telemetry),
        unfit_of(make_spec(), ranks, telemetry),
    )
    # Who asks for more than there is waits for itself.
    assert [OVERSUBSCRIBED] == flags_of(make_spec(workers=8), ranks, telemetry)


def test_what_is_not_known_of_the_cores_is_not_held_against_a_launch(make_spec, make_rank):
    """A worker that can't tell its cores gives neither reason nor flag."""
    ranks = [make_rank(rank, threads={}) for rank in range(2)]
    assert ([], []) == (unfit_of(make_spec(), ranks), flags_of(make_spec(), ranks))


def test_workers_count_by_device_under_dp_and_by_rank_otherwise(make_spec):
    """DataParallel loads for all its GPUs in one rank."""
    assert 3 + 2 * 4 == cores_needed(make_spec(strategy="dp", ranks_per_node=1, gpus=4, threads=3, workers=2))
    assert 3 * 4 + 2 * 4 == cores_needed(
        make_spec(strategy="ddp", ranks_per_node=4, gpus=4, threads=3, workers=2)
    )
    assert 3 + 2 == cores_needed(make_spec(strategy="single", ranks_per_node=1, gpus=1, threads=3, workers=2))


def test_ranks_that_are_bound_to_cores_of_their_own_have_them_together(make_rank):
    """Ranks that say which cores are theirs are joined; others share the host's number."""
    bound = [
        make_rank(rank, threads={"cores_allowed": 2, "core_ids": [2 * rank, 2 * rank + 1]})
        for rank in range(2)
    ]
    assert {"n1": 4} == cores_by_host(bound)
    assert {"n1": 4} == cores_by_host([make_rank(rank) for rank in range(2)])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parameters": 5}, "Rank 0 has 1199882 parameters, rank 1 has 5."),
        ({"epochs": []}, "Rank 0 has 1 epochs, rank 1 has 0."),
        ({"step_seconds": [0.02, 0.02]}, "Rank 0 has 4 timed steps, rank 1 has 2."),
        (
            {"stack": {"python": "3.11.7", "torch": "2.6.0"}},
            "Rank 0 ran with torch 2.14.1, rank 1 with 2.6.0",
        ),
    ],
)
def test_ranks_that_did_not_do_the_same_are_told(reasons, changes, said):
    """Other work or another stack on one rank is no launch of the variant."""
    (reason,) = reasons(**changes)
    assert reason.startswith(said)


def test_numbers_that_are_not_finite_are_told_with_their_places(reasons):
    """The first places are named, the rest are counted."""
    found = reasons(
        step_seconds=[math.nan, math.inf, 0.01, 0.01],
        telemetry={"w": [math.nan]},
        loss_last=math.nan,
        parameters=1199882,
    )
    (reason,) = [reason for reason in found if "not finite" in reason]
    assert "rank 1" in reason
    assert "step_seconds[0], step_seconds[1], loss_last and 1 more" in reason


def test_a_clock_that_was_set_while_a_rank_measured_is_told(make_spec, make_rank):
    """The steady clock gave the window 0.04 s, the system's an hour."""
    ranks = [make_rank(0, window_edges=[[1000.0, 1000.04]]), make_rank(1, window_edges=[[1000.0, 4600.0]])]
    (reason,) = unfit_of(make_spec(), ranks)
    assert (
        "The clock of n1 was set while rank 1 measured: its window of 0.04 s took 3.6e+03 s by it." in reason
    )
    assert "chronyc tracking" in reason


@pytest.mark.parametrize("edges", [[], [[1000.0]], [[1000.0, 1000.2]]])
def test_edges_that_are_missing_or_a_moment_off_are_no_set_clock(make_spec, make_rank, edges):
    """A rank that lost its core between reading two clocks is none; nor is one that knows no edges."""
    assert [] == unfit_of(make_spec(), [make_rank(rank, window_edges=edges) for rank in range(2)])


def test_what_telemetry_says_is_a_fact_about_the_machine(make_spec, make_rank):
    """A card that was slowed down makes the launch unfit."""
    telemetry = {
        "window_seconds": 2.0,
        "gpus": [
            {"host": "n1", "uuid": "u0", "index": 0, "ranks": [0], "throttle_seconds": {"thermal": 1.0}}
        ],
    }
    (reason,) = unfit_of(make_spec(), [make_rank(rank) for rank in range(2)], telemetry)
    assert "slowed down (thermal) for 1 s of the window's 2 s" in reason


def test_a_launch_that_drifts_is_flagged_and_fit(make_spec, make_rank):
    """Its times are no reason to throw it away."""
    drifting = make_rank(1, step_seconds=[0.01 * (1 + i / 50) for i in range(50)])
    assert ["unsteady"] == flags_of(make_spec(), [make_rank(0), drifting])
    assert [] == unfit_of(make_spec(), [make_rank(0), drifting])


def test_ranks_in_another_order_than_their_devices_are_told(make_spec, make_rank):
    """Rank 1 with the place of rank 0 works on the other one's card."""
    found = reasons_of(make_spec(), [make_rank(0, local_rank=1), make_rank(1, local_rank=0)])

    assert [
        "Rank 0 on n1 has local rank 1, 0 was expected",
        "Rank 1 on n1 has local rank 0, 1 was expected",
    ] == [reason.partition(": ")[0] for reason in found]


def test_two_nodes_of_one_name_have_each_their_first_rank(make_spec, make_rank):
    """Containers, and nodes that one machine plays, can have one host name; the order is each node's own."""
    ranks = [make_rank(rank, local_rank=rank % 2, world_size=4) for rank in range(4)]

    assert [] == reasons_of(make_spec(nodes=2), ranks)
