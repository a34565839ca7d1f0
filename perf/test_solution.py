"""Large batches: the exact learning rate at each step, and whether a short training gets as good as it has to."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from perf.catalogue import Member, Pair, groups, pairs, variants
from perf.limits import SOLVED
from perf.suite.judge import Judge
from perf.suite.source import Measurement
from perf.verdict.solution import Solution, rate_at, solution_of
from perf.workloads import WORKLOADS

_LARGE = [
    Pair(g, m, g.members[0], f"{m.variant.strategy}-{'.'.join(m.variant.rate)}")
    for g in groups("solution")
    for m in g.members[1:]
]


def solution(measured: Measurement) -> Solution:
    """Return when a measurement's first launch reached the target."""
    launch = measured.first
    losses = [epoch.validation_loss for epoch in launch.epochs[0]]
    return solution_of(launch.epoch_seconds, losses, SOLVED[launch.workload].value)


@pytest.fixture(scope="session", params=variants(plan=("solution",)))
def training(request: pytest.FixtureRequest, bench: Any) -> Measurement:
    """A short training with validation after each epoch."""
    return bench.measure(request.param)  # type: ignore[no-any-return]


def test_the_learning_rate_is_exact_at_each_step(training: Measurement) -> None:
    """In the warm-up, at its end and behind it: the rate that steps were taken with is the rule's, on every rank."""
    variant = training.member.variant
    for launch in training.launches:
        ratio = launch.batch_size * launch.ranks_per_node / WORKLOADS[launch.workload].batch_size
        steps_an_epoch = launch.epochs[0][0].batches
        for effective in launch.effective:
            found = effective["learning_rate"]
            assert {"0", str(variant.rate_warmup)} <= set(found["used"])
            for step, rate in found["used"].items():
                # Behind the first epoch the workload's own schedule multiplies too.
                if int(step) < steps_an_epoch:
                    expected = rate_at(
                        int(step), found["base"], variant.rate_rule, ratio, variant.rate_warmup
                    )
                    assert math.isclose(expected, rate, rel_tol=1e-9), f"step {step} was taken with {rate}"


def reaches(member: Member) -> bool:
    """Say whether a training has to reach its target: all but the large batch whose rate stays as it was."""
    large = member.variant.batch is not None
    return not large or member.variant.rate_rule != "none"


def test_a_training_reaches_its_target_or_must_not(training: Measurement, limits: Judge) -> None:
    """The small batch and the large ones with a scaled rate get there; the large one without must miss it.

    If that one got there too the target would tell nothing: faster steps alone are no success.
    """
    found = solution(training)
    target = SOLVED[training.first.workload].value
    wanted = reaches(training.member)
    if wanted:
        assert found.seconds is not None, (
            f"the loss is {found.best:.4g} after {found.epochs} epochs, above {target}"
        )
    else:
        assert found.seconds is None, f"it reached {target} without a scaled rate: {found.best:.4g}"
    after = "never" if found.seconds is None else f"after {found.seconds:.4g} s and {found.epochs} epochs"
    said = f"It reaches a validation loss of {target} {after}; the best is {found.best:.4g}."
    limits.tell("best_validation_loss", "loss", training, found.best, [said])


@pytest.mark.parametrize("pair", pairs([pair for pair in _LARGE if reaches(pair.new)]))
def test_time_to_solution_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """Seconds of training on the wall clock until the target was kept, beside those of the workload's own batch."""
    large, own = bench.measure(pair.new), bench.measure(pair.base)
    found, base = solution(large), solution(own)
    if found.seconds is None or base.seconds is None:
        pytest.fail("a training that has to reach its target did not")
    rate, before = (statistics.median(side.throughputs) for side in (large, own))
    said = (
        f"The large batch takes {found.seconds:.4g} s ({found.epochs} epochs) to the target, the own one "
        f"{base.seconds:.4g} s ({base.epochs}); its throughput is {rate / before:.3g} times as high."
    )
    limits.tell("time_to_solution", "s", large, found.seconds, [said])
