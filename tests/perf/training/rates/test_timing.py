from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.training.rates import timing
from perf.training.rates.timing import FEWEST, LEAST_SECONDS, MOST, Timer, growth, missing, rate, repetitions


class Clock:
    """Time that passes only where work says so, and a device that is idle once it was waited for."""

    def __init__(self, monkeypatch):
        self.now, self.waits, self.calls = 50.0, 0, 0
        monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def work(self, seconds):
        def run():
            self.calls += 1
            self.now += seconds

        return run

    def wait(self):
        self.waits += 1


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_short_work_is_called_until_a_repetition_is_long_enough(clock):
    """A microsecond is far below what a synchronize costs; the seconds are those of one call all the same."""
    seconds = Timer(clock.wait, box=1.0).repeat(clock.work(1e-6))

    assert MOST == len(seconds)
    assert all(math.isclose(1e-6, taken, rel_tol=1e-6) for taken in seconds)
    assert clock.calls > MOST * LEAST_SECONDS / 1e-6


def test_a_box_bounds_the_repetitions(clock):
    """The time that a rate is given holds its warm-up too."""
    started = clock.now
    seconds = Timer(clock.wait, box=1.0).repeat(clock.work(0.1))

    assert 8 == pytest.approx(len(seconds), abs=1)
    assert clock.now - started <= 1.0 + 1e-9


def test_a_slow_work_gets_the_fewest_repetitions_and_one_that_fills_the_box_gets_one(clock):
    """Three have a median; what takes longer than its whole time by itself isn't tried three times more."""
    assert FEWEST == len(Timer(clock.wait, box=1.0).repeat(clock.work(0.6)))
    assert 1 == len(Timer(clock.wait, box=1.0).repeat(clock.work(1.5)))


def test_a_repetition_begins_and_ends_with_idle_devices(clock):
    """Both edges wait, and the warm-up does too."""
    count = len(Timer(clock.wait, box=0.5).repeat(clock.work(0.1)))

    assert 2 * (count + 2) == clock.waits


def test_preparation_is_not_timed_and_comes_before_every_repetition(clock):
    """Dropping a page cache takes as long as it takes; a repetition that needs it is one call."""
    prepared = []

    def prepare():
        prepared.append(clock.calls)
        clock.now += 5.0

    seconds = Timer(clock.wait, box=100.0).repeat(clock.work(0.001), prepare=prepare, single=True)

    assert all(math.isclose(0.001, taken, rel_tol=1e-6) for taken in seconds)
    assert list(range(len(seconds) + 1)) == prepared


def test_ranks_repeat_as_often_as_the_one_that_wants_most(clock):
    """A collective that one rank calls once more than the others never returns."""
    asked = []

    def agree(number):
        # Another rank wants four times the calls, then no more of them, then twelve repetitions.
        asked.append(number)
        return max(number, (4, 1, 12)[len(asked) - 1])

    seconds = Timer(clock.wait, 1.0, agree).repeat(clock.work(2 * LEAST_SECONDS))

    assert [1, 1] == asked[:2]
    assert 12 == len(seconds)
    assert 1 + 1 + 4 + 12 * 4 == clock.calls


@given(st.floats(0.0, 10.0))
def test_calls_grow_until_they_are_long_enough(seconds):
    """Never by less than twice, or a repetition that is just too short would be tried for ever; nor by too much."""
    factor = growth(seconds)

    assert (factor == 1) == (seconds >= LEAST_SECONDS)
    assert 1 <= factor <= timing.FASTEST_GROWTH


@given(st.floats(-10.0, 100.0), st.floats(0.0, 100.0), st.floats(0.01, 10.0))
def test_repetitions_are_few_but_never_none(left, seconds, box):
    """However little time is left there is one."""
    count = repetitions(left, seconds, box)

    assert 1 <= count <= MOST
    assert (count == 1) == (seconds > box)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=20), st.floats(1.0, 1e15))
def test_a_rate_is_the_median_of_its_repetitions(seconds, amount):
    """It lies between the slowest and the fastest; one repetition has no spread."""
    found = rate(amount, "B/s", seconds, bytes=3)

    assert found.value is not None
    assert min(found.repetitions) <= found.value <= max(found.repetitions)
    assert (found.spread is None) == (len(seconds) == 1)
    assert {"bytes": 3} == found.about


def test_a_rate_that_can_not_be_had_is_null_with_its_reason():
    """Never 0."""
    found = missing("FLOP/s", "no such unit", precision="tf32")

    assert (None, "no such unit", []) == (found.value, found.reason, found.repetitions)
