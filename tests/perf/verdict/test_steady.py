from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.steady import PARTS, drift, is_unsteady, too_unsteady


def steps(count, growth=0.0, noise=0.0, seed=1):
    """Return step times around 10 ms that grow by `growth` over the window."""
    rng = random.Random(seed)
    return [0.01 * math.exp(growth * i / count + rng.gauss(0.0, noise)) for i in range(count)]


def test_a_window_that_slows_down_is_unsteady():
    """Ten percent over the window, with one percent of noise, is beyond it."""
    assert is_unsteady(steps(100, growth=0.1, noise=0.01))
    assert is_unsteady(steps(100, growth=-0.1, noise=0.01))


def test_a_step_in_the_middle_is_found_too():
    """A neighbour that comes at half time shifts all later steps."""
    assert is_unsteady(steps(50, noise=0.01) + [1.2 * s for s in steps(50, noise=0.01, seed=2)])


def test_noise_alone_is_hardly_ever_called_unsteady():
    """At most 3 of 2000 steady windows; chance is 2 of 12,870."""
    flagged = sum(is_unsteady(steps(64, noise=0.2, seed=seed)) for seed in range(2000))
    assert flagged <= 3


def test_a_drift_that_moves_no_verdict_is_none():
    """Half a percent is below half of the smallest margin, however quiet the steps are."""
    assert not is_unsteady(steps(100, growth=0.01))


def test_calibrated_noise_is_what_a_drift_is_held_against():
    """A system whose launches differ by 10 % drifts by 5 % without meaning anything."""
    window = steps(100, growth=0.1, noise=0.01)
    assert is_unsteady(window, noise=0.01)
    assert not is_unsteady(window, noise=0.1)


@pytest.mark.parametrize("count", range(2 * PARTS))
def test_too_few_steps_tell_nothing(count):
    """A half needs as many steps as pieces."""
    assert not is_unsteady(steps(count, growth=5.0))


@given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=40), st.floats(0.1, 10.0))
def test_a_drift_does_not_depend_on_the_clocks_unit(window, factor):
    """Scaling all steps changes nothing; turning them round changes the sign."""
    assert drift([factor * s for s in window]) == pytest.approx(drift(window), abs=1e-9)
    assert drift(window[::-1]) == pytest.approx(-drift(window), abs=1e-9)


def test_times_that_can_not_be_have_no_drift():
    """No step, one step, or one that took no time."""
    assert [None, None, None] == [drift([]), drift([1.0]), drift([1.0, 0.0, 1.0])]


@pytest.mark.parametrize("odd", [math.nan, math.inf, 0.0])
def test_what_is_no_number_hides_no_other(odd):
    """A minimum that begins with one that is none would pass a step of no time by."""
    assert drift([odd, 0.0]) is None
    assert drift([odd, 0.01, 0.01]) is None


@pytest.mark.parametrize(
    ("flags", "expected"),
    [([], False), ([True], True), ([True, False], False), ([True, True, False], True), ([False] * 5, False)],
)
def test_a_side_of_which_more_than_half_drifts_is_too_unsteady(flags, expected):
    """Half is not too many."""
    assert expected == too_unsteady(flags)
