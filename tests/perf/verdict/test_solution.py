"""Time to solution on the wall clock."""

from __future__ import annotations

import math

import pytest

from perf.verdict.solution import Solution, rate_at, solution_of


def test_the_first_epoch_that_keeps_the_target_ends_the_clock():
    """Seconds until then, whatever comes later."""
    assert Solution(5.0, 2, 0.1) == solution_of([2.0, 3.0, 3.0], [0.5, 0.2, 0.1], 0.2)


def test_a_training_that_misses_has_no_time():
    """It ran all its epochs; its best loss says how far it came."""
    assert Solution(None, 2, 0.3) == solution_of([1.0, 1.0], [0.4, 0.3], 0.2)


def test_a_loss_that_is_not_finite_solves_nothing():
    """The source's run on 288 GPUs had a validation loss of nan in its first epoch."""
    assert Solution(2.0, 2, 0.1) == solution_of([1.0, 1.0], [None, 0.1], 0.2)
    assert math.isnan(solution_of([1.0], [None], 0.2).best)


@pytest.mark.parametrize(("seconds", "losses"), [([], []), ([1.0], []), ([1.0], [0.1, 0.2])])
def test_every_epoch_needs_its_loss(seconds, losses):
    """A training that was not validated tells nothing."""
    with pytest.raises(ValueError, match="tell no solution"):
        solution_of(seconds, losses, 0.2)


@pytest.mark.parametrize(("gpus", "peak"), [(18, 8.5e-4), (72, 1.7e-3), (288, 3.4e-3)])
def test_peak_rates_are_those_of_the_source(gpus, peak):
    """2e-4 times the root of the GPUs, after 128 steps: the SC22 tutorial's configurations."""
    assert math.isclose(peak, rate_at(128, 2e-4, "sqrt", gpus, 128), rel_tol=0.01)
    assert math.isclose(peak / 128, rate_at(0, 2e-4, "sqrt", gpus, 128), rel_tol=0.01)
