from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf import contract
from perf.contract import EpochRecord, LaunchRecord, Rate
from perf.launch.merge import finite, merge, slowest_epochs, slowest_rates


def test_rates_are_all_samples_over_the_slowest_window(make_spec, make_rank):
    """Samples add up over ranks, the slowest rank's window is the launch's."""
    ranks = [
        make_rank(0, window_seconds=0.04, window_samples=256),
        make_rank(1, window_seconds=0.08, window_samples=200, step_seconds=[0.02] * 4),
    ]
    record = merge(make_spec(), ranks, 12.5)
    assert (456, 0.08, [0.04, 0.08], 12.5) == (
        record.samples,
        record.window_seconds,
        record.window_seconds_per_rank,
        record.launch_seconds,
    )
    assert 456 / 0.08 == record.samples_per_second
    assert record.valid


def test_the_median_step_is_that_of_the_rank_with_the_largest(make_spec, make_rank):
    """One outlier makes no rank the slowest; the median decides."""
    ranks = [
        make_rank(0, step_seconds=[0.01, 0.01, 0.01, 0.97], window_seconds=1.0),
        make_rank(1, step_seconds=[0.25] * 4, window_seconds=1.0),
    ]
    assert 0.25 == merge(make_spec(), ranks, 1.0).median_step_seconds


def test_epochs_take_their_slowest_rank_each(make_rank):
    """Another rank may be slowest in each epoch; an epoch that one rank lacks is the other's."""
    ranks = [
        make_rank(0, epochs=[EpochRecord(0, 3.0, 1, 1, True, 0.1), EpochRecord(1, 1.0, 1, 1, True, 0.1)]),
        make_rank(1, epochs=[EpochRecord(i, 2.0, 1, 1, True, 0.1) for i in range(3)]),
    ]
    assert [3.0, 2.0, 2.0] == slowest_epochs(ranks)


def test_a_rate_is_the_slowest_rank_s_and_null_where_a_rank_had_none(make_spec, make_rank):
    """What one rank measured alone is that; a rate is no mean over ranks of which one could not have it."""
    slow, fast, none = Rate(1.0, "B/s", [1.0]), Rate(2.0, "B/s", [2.0]), Rate(None, "B/s", reason="no peer")

    assert {"a": slow, "b": none, "c": none, "d": fast} == slowest_rates(
        [{"a": fast, "b": fast, "c": none}, {"a": slow, "b": none, "c": slow, "d": fast}]
    )
    ranks = [make_rank(0, rates={"a": fast}), make_rank(1, rates={"a": slow})]
    assert {"a": slow} == merge(make_spec(), ranks, 1.0).rates


def test_losses_are_means_over_ranks_and_null_if_a_rank_has_none(make_spec, make_rank):
    """A mean over some ranks would be passed off as that over all."""
    record = merge(
        make_spec(), [make_rank(0, loss_first=1.0), make_rank(1, loss_first=4.0, loss_last=None)], 1.0
    )
    assert (2.5, None) == (record.loss_first, record.loss_last)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((True, True), True),
        ((True, False), False),
        ((None, False), False),
        ((None, True), None),
        ((None, None), None),
    ],
)
def test_losses_are_finite_if_every_ranks_are(make_spec, make_rank, values, expected):
    """One rank's infinite loss is the launch's; what is not known stays so."""
    ranks = [make_rank(rank, losses_finite=value) for rank, value in enumerate(values)]
    assert expected is merge(make_spec(), ranks, 1.0).losses_finite


def test_what_belongs_to_a_rank_stays_in_rank_order(make_spec, make_rank):
    """Records may come in any order; the lists of the launch don't."""
    ranks = [
        make_rank(1, host="n2", total_steps=7, clock="mixed"),
        make_rank(0, host="n1", total_steps=6, clock="host"),
    ]
    record = merge(make_spec(), ranks, 1.0)
    assert ["host", "mixed"] == record.clocks
    assert (["n1", "n2"], [6, 7], 1000.0) == (record.host, record.total_steps, record.started_at)
    assert [{}, {}] == record.telemetry["ranks"]


def test_the_first_step_is_the_slowest_ranks(make_spec, make_rank):
    """The launch's first step is over when the last rank's is; without any it is null."""
    ranks = [make_rank(0, first_step_seconds=0.5), make_rank(1, first_step_seconds=0.75)]
    assert 0.75 == merge(make_spec(), ranks, 1.0).first_step_seconds
    ranks = [make_rank(rank, first_step_seconds=None) for rank in range(2)]
    assert merge(make_spec(), ranks, 1.0).first_step_seconds is None


def test_allocator_retries_add_up(make_spec, make_rank):
    """Every device of every rank counts."""
    ranks = [
        make_rank(0, allocator_retries={"cuda:0": 1, "cuda:1": 2}),
        make_rank(1, allocator_retries={"cuda:1": 4}),
    ]
    assert 7 == merge(make_spec(), ranks, 1.0).allocator_retries


def test_phases_are_there_only_if_every_rank_has_them(make_spec, make_rank):
    """Phases of some ranks can't be compared over ranks."""
    phases = {"forward": [0.1]}
    both = [make_rank(rank, phase_seconds=phases) for rank in range(2)]
    assert [phases, phases] == merge(make_spec(), both, 1.0).phase_seconds
    assert merge(make_spec(), [both[0], make_rank(1)], 1.0).phase_seconds is None


def test_line_profiles_are_those_that_were_written(make_spec, make_rank):
    """Ranks without a profile leave no gap."""
    ranks = [make_rank(0), make_rank(1, line_profile="train-rank-1.lprof")]
    assert ["train-rank-1.lprof"] == merge(make_spec(), ranks, 1.0).line_profiles


@pytest.mark.parametrize("ranks", [(), (0,), (1, 1), (0, 1, 2)])
def test_records_of_other_ranks_than_all_are_refused(make_spec, make_rank, ranks):
    """Merging some of the ranks would give a rate that nobody reached."""
    with pytest.raises(ValueError, match="expected the records of ranks 0 to 1"):
        merge(make_spec(), [make_rank(rank) for rank in ranks], 1.0)


def test_an_invalid_launch_is_merged_with_its_reasons(make_spec, make_rank):
    """What was measured is kept for whoever wants to look; it is not judged."""
    record = merge(make_spec(), [make_rank(0), make_rank(1, window_seconds=0.08)], 1.0)
    assert not record.valid
    assert 1 == len(record.reasons)


def test_a_launch_without_a_window_has_zero_rates(make_spec, make_rank):
    """Where no steps were asked for, none are missed."""
    empty = {"step_seconds": [], "window_seconds": 0.0, "window_samples": 0, "halves": []}
    record = merge(make_spec(timed_steps=0), [make_rank(rank, **empty) for rank in range(2)], 1.0)
    assert (True, 0.0, 0.0) == (record.valid, record.median_step_seconds, record.samples_per_second)


NUMBERS = st.floats() | st.floats(0.001, 10.0)


@settings(max_examples=40)
@given(st.data())
def test_whatever_numbers_a_record_holds_the_merged_one_can_be_written_and_read(make_spec, make_rank, data):
    """NaN and infinity make a launch invalid, and never one that its file can't hold."""
    ranks = [
        make_rank(
            rank,
            step_seconds=data.draw(st.lists(NUMBERS, max_size=4)),
            window_seconds=data.draw(NUMBERS),
            loss_first=data.draw(st.none() | NUMBERS),
            first_step_seconds=data.draw(st.none() | NUMBERS),
            startup_seconds={"imports": data.draw(NUMBERS)},
            telemetry={"power": [{"watt": data.draw(NUMBERS)}]},
            epochs=[EpochRecord(0, data.draw(NUMBERS), 1, 1, True, data.draw(NUMBERS), data.draw(NUMBERS))],
        )
        for rank in range(2)
    ]
    record = merge(make_spec(), ranks, 1.0)
    assert record == contract.decode(LaunchRecord, contract.encode(record), "here")
    values = [
        n for rank in ranks for n in (*rank.step_seconds, rank.window_seconds, *rank.startup_seconds.values())
    ]
    if not all(map(math.isfinite, values)):
        assert not record.valid


@given(st.lists(st.lists(st.floats(0.001, 1.0), min_size=3, max_size=9), min_size=2, max_size=2))
def test_rates_and_medians_follow_their_definitions(make_spec, make_rank, steps):
    """For any steps: global samples over the largest window, the largest median, and both within the steps' range."""
    ranks = [
        make_rank(
            rank, step_seconds=seconds, window_seconds=math.fsum(seconds), window_samples=64 * len(seconds)
        )
        for rank, seconds in enumerate(steps)
    ]
    record = merge(make_spec(), ranks, 1.0)
    total, slowest = 64 * sum(map(len, steps)), max(map(math.fsum, steps))
    assert total / slowest == record.samples_per_second
    assert max(map(statistics.median, steps)) == record.median_step_seconds


def test_numbers_that_are_not_finite_become_null_or_are_left_out():
    """In an object the key keeps its place, in a series of readings the reading goes."""
    assert {"a": None, "b": [1.0, {"c": None}], "d": "x", "e": True} == finite(
        {"a": math.nan, "b": [1.0, math.inf, {"c": -math.inf}], "d": "x", "e": True}
    )


def test_what_was_observed_beside_a_launch_is_part_of_its_record(make_spec, make_rank):
    """Telemetry is kept with the ranks' own account, and what makes the machine unfit makes the launch invalid."""
    ranks = [make_rank(rank, telemetry={"cpu_seconds": rank}) for rank in range(2)]
    card = {"host": "n1", "uuid": "u0", "index": 0, "ranks": [0], "other_processes": 1}
    record = merge(make_spec(), ranks, 1.0, {"window_seconds": 2.0, "nodes": [], "gpus": [card]})

    assert [{"cpu_seconds": 0}, {"cpu_seconds": 1}] == record.telemetry["ranks"]
    assert [card] == record.telemetry["gpus"]
    assert not record.valid
    assert record.unfit == record.reasons
    assert 1 == len(record.unfit)
    assert {"ranks": [{"cpu_seconds": 0}, {"cpu_seconds": 1}]} == merge(make_spec(), ranks, 1.0).telemetry
