"""What comes before steady training is told apart, and its parts sum to the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.startup import first_epoch_parts, in_words, start_parts, start_up

SECONDS = st.floats(0.0, 1e4)


def test_a_start_is_told_in_its_parts():
    """Phases are differences of the moments at which they began."""
    startup = {"imports": 5.2, "interpreter": 0.06, "devices": 0.35, "process_group": 0.01}
    moments = {"until_data": 0.1, "until_build": 0.5, "until_warm_up": 0.7, "until_read_back": 3.0}

    assert pytest.approx(
        {
            "interpreter": 0.06,
            "imports": 5.2,
            "devices": 0.35,
            "process group": 0.01,
            "data": 0.4,
            "network and optimizer": 0.2,
        }
    ) == start_parts({**startup, **moments})


def test_data_that_were_opened_before_the_devices_are_part_of_the_data():
    """Some of it takes place before, and all of it is in the whole."""
    startup = {"imports": 5.0, "data": 0.25, "devices": 0.5, "process_group": 0.0, "until_data": 0.0}
    startup.update(until_build=0.5, until_warm_up=0.75)

    assert 0.75 == start_parts(startup)["data"]
    assert sum(start_parts(startup).values()) == start_up([startup], 0.0) == 6.5


def test_a_record_without_a_part_has_none():
    """A missing reading is left out, not 0; a fork has no imports."""
    assert {} == start_parts({})
    assert {"fork": 0.04, "devices": 0.35} == start_parts({"devices": 0.35, "fork": 0.04})


def test_the_first_epochs_excess_is_attributed():
    """Of 2 s more, the workers' start took 0.5 s and the first step 1.2 s."""
    found = first_epoch_parts([5.0, 3.0, 3.0], [0.6, 0.1, 0.1], 1.81, 0.01)

    assert pytest.approx({"workers and first batch": 0.5, "first step": 1.2, "rest": 0.3}) == found
    assert "first step 1.2 s, workers and first batch 0.5 s, rest 0.3 s" == in_words(found)
    assert "data 0.092 s, process group below 1 ms" == in_words({"process group": 2.08e-6, "data": 0.092})


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=2, max_size=9), st.none() | SECONDS, SECONDS)
def test_the_parts_sum_to_the_excess(epochs, first_step, step):
    """Nothing is counted twice or lost."""
    seconds, batches = zip(*epochs, strict=True)
    found = first_epoch_parts(seconds, batches, first_step, step)
    later = sorted(seconds[1:])
    middle = (later[(len(later) - 1) // 2] + later[len(later) // 2]) / 2

    assert seconds[0] - middle == pytest.approx(sum(found.values()), abs=1e-6)


@pytest.mark.parametrize(("epochs", "batches"), [([1.0], [0.1]), ([], []), ([1.0, 1.0], [0.1])])
def test_one_epoch_has_no_excess(epochs, batches):
    """There is nothing to hold it against."""
    with pytest.raises(ValueError, match="two are needed"):
        first_epoch_parts(epochs, batches, 0.1, 0.01)


def test_a_start_ends_with_the_first_step_of_the_slowest_rank():
    """Interpreter, imports, process group, all before the warm-up, and the first step; None if one is not known."""
    rank = {"interpreter": 0.1, "imports": 2.0, "process_group": 0.3, "until_warm_up": 1.0, "until_data": 0.5}
    slow = {**rank, "imports": 3.0}
    assert pytest.approx(4.9) == start_up([rank, slow], 0.5)
    assert pytest.approx(5.2) == start_up([rank, {**slow, "devices": 0.3}], 0.5)
    assert pytest.approx(3.8) == start_up([{k: v for k, v in rank.items() if k != "interpreter"}], 0.5)
    assert start_up([rank], None) is None
    assert start_up([], 0.5) is None
    assert start_up([{"imports": 1.0}], 0.5) is None
