"""First step, first epoch, later epochs."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import variants
from perf.limits import FIRST_EPOCH
from perf.suite.judge import Judge
from perf.suite.source import Measurement
from perf.verdict.startup import first_epoch_parts, in_words, start_parts


@pytest.fixture(scope="session", params=variants(plan=("epochs",)))
def epochs(request: pytest.FixtureRequest, bench: Any) -> Measurement:
    """A variant that trains several epochs, with validation after each."""
    return bench.measure(request.param)  # type: ignore[no-any-return]


def test_first_epoch_penalty(epochs: Measurement, limits: Judge) -> None:
    """The first epoch takes no more than its limit times a later one."""

    def penalty(measured: Measurement) -> list[float]:
        return [
            e[0] / statistics.median(e[1:]) for e in (launch.epoch_seconds for launch in measured.launches)
        ]

    limits.one_sample(
        epochs.member,
        penalty,
        FIRST_EPOCH[epochs.member.variant.device],
        f"first epoch ÷ later of {epochs.member.id}",
    )


def test_where_the_start_and_the_first_epoch_go_is_told(epochs: Measurement, limits: Judge) -> None:
    """What comes before steady training is attributed: imports, data, the workers' start, the first step."""
    launch = epochs.first
    parts = first_epoch_parts(
        launch.epoch_seconds,
        [epoch.first_batch_seconds for epoch in launch.epochs[0]],
        launch.first_step_seconds,
        launch.median_step_seconds,
    )
    start = start_parts(launch.startup_seconds[0])
    excess = sum(parts.values())
    sentences = [f"The first epoch takes {excess:.3g} s more than a later one: {in_words(parts)}."]
    if start:
        sentences.append(f"Before it: {in_words(start)}.")
    limits.tell("first_epoch_excess", "s", epochs, excess, sentences)


def test_every_epoch_is_validated(epochs: Measurement) -> None:
    """After each epoch rank 0 has a loss, the seconds that it took and, where there are classes, an accuracy."""
    for launch in epochs.launches:
        assert len(launch.epoch_seconds) == len(launch.epochs[0]) > 1
        for epoch in launch.epochs[0]:
            assert epoch.complete
            assert epoch.validation_loss is not None, "the validation loss is not finite"
            if launch.workload == "mnist_cnn":
                # Ten classes of equal size: chance is 0.1.
                assert epoch.validation_accuracy is not None
                assert 0.2 < epoch.validation_accuracy <= 1.0
            assert epoch.validation_seconds is not None
            assert epoch.validation_seconds > 0
