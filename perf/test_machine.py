"""What the machine can do by itself: its card of component rates, each of which can have a floor."""

from __future__ import annotations

import math
from typing import Any

import pytest

from perf.catalogue import Member
from perf.rates import cards, each_rate, rates_of
from perf.suite.judge import Judge


@pytest.mark.parametrize("card", cards())
def test_the_card_is_whole(card: Member, bench: Any) -> None:
    """Every rate of the card was measured or says why not, and lies between its slowest and fastest repetition."""
    for launch in bench.measure(card).launches:
        assert set(rates_of(card)) == set(launch.rates)
        for name, rate in launch.rates.items():
            if rate.value is None:
                assert rate.reason, f"{name} has neither a value nor a reason"
                continue
            assert all(math.isfinite(value) and value > 0 for value in rate.repetitions), name
            assert min(rate.repetitions) <= rate.value <= max(rate.repetitions), name
        # What shares a card's launch with training, and is no rate: nothing was trained.
        assert 0 == launch.samples


@pytest.mark.parametrize(("card", "rate"), each_rate())
def test_rate_is_not_below_its_floor(card: Member, rate: str, bench: Any, limits: Judge) -> None:
    """A component of the machine is not slower than this system is known to be."""
    measured = bench.measure(card)
    if not measured.values(rate):
        pytest.skip(f"{rate} can't be had here: {measured.first.rates[rate].reason}")
    limits.floor(measured, rate)
