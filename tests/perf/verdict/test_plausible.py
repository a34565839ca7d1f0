from __future__ import annotations

import math
import random

import pytest

from perf.verdict.plausible import above_peak, above_reference, negative_share, too_efficient


def drawn(seed: int, level: float, sd: float = 0.005, launches: int = 10) -> list[float]:
    """Return launch values of normal log noise around `level`."""
    source = random.Random(seed)
    return [level * math.exp(source.gauss(0.0, sd)) for _ in range(launches)]


@pytest.mark.parametrize("launches", [5, 7, 8, 10, 16])
def test_more_work_than_the_gpus_can_do_is_noticed(launches):
    """An efficiency of 1.15 is called implausible from 5 launches on, one of 1.0 never is."""
    one = drawn(1, 0.1, launches=launches)
    assert too_efficient(drawn(2, 0.115, launches=launches), one)
    assert () == too_efficient(drawn(2, 0.1, launches=launches), one)


def test_an_efficiency_just_above_its_ceiling_is_left_alone():
    """The bound must be above 1.05, not the estimate."""
    assert () == too_efficient(drawn(2, 0.1055), drawn(1, 0.1))


def test_one_disturbed_launch_of_ten_does_not_hide_an_implausible_efficiency():
    """From 8 launches on the bound is a rank, which a single wild launch doesn't move."""
    assert too_efficient([*drawn(2, 0.115, launches=9), 3.0], drawn(1, 0.1))


def test_a_loader_that_speeds_training_up_is_noticed():
    """A share of -15 % is called implausible; -2 % and +20 % are not."""
    synthetic = drawn(1, 0.1)
    (reason,) = negative_share(synthetic, drawn(2, 0.087))
    assert "Did both modes do the same work?" in reason
    assert () == negative_share(synthetic, drawn(2, 0.098))
    assert () == negative_share(synthetic, drawn(2, 0.125))


@pytest.mark.parametrize(
    ("factor", "tolerance", "same", "noticed"),
    [
        (1.25, 0.03, True, True),
        (1.12, 0.03, True, False),
        (1.25, 0.08, True, False),
        (1.25, 0.03, False, False),
    ],
)
def test_a_rate_far_above_its_reference_is_noticed(factor, tolerance, same, noticed):
    """Above 15 % and three tolerances, with the same configuration, a rate is implausible."""
    rates = drawn(3, 1000.0 * factor)
    assert noticed is bool(above_reference(rates, centre=1000.0, tolerance=tolerance, same_fingerprint=same))


def test_more_than_the_peak_is_a_fact():
    """One launch above what the devices' peak allows is enough; no launch is no reason."""
    (reason,) = above_peak([900.0, 1100.0], flop_per_sample=1e12, peak_flops=1e15)
    assert "1100 samples/s" in reason
    assert () == above_peak([900.0, 1000.0], flop_per_sample=1e12, peak_flops=1e15)
    assert () == above_peak([], flop_per_sample=1e12, peak_flops=1e15)


def test_one_launch_proves_nothing():
    """With fewer than two launches a side no bound exists, so nothing is called implausible."""
    assert () == too_efficient([2.0], [1.0])
    assert () == negative_share([2.0, 2.0], [1.0])
    assert () == above_reference([2.0], centre=1.0, tolerance=0.03, same_fingerprint=True)


@pytest.mark.parametrize("launches", [5, 10])
def test_honest_noise_on_the_ceiling_is_rarely_called_implausible(launches):
    """With an efficiency of exactly 1.05 at most a few of 2,000 noisy measurements exceed the bound."""
    called = sum(
        bool(too_efficient(drawn(seed, 0.105, 0.05, launches), drawn(-seed - 1, 0.1, 0.05, launches)))
        for seed in range(2_000)
    )
    assert called <= 3
