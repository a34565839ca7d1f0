"""Efficiency and throughput are judged together, so that a faster device is not called worse scaling."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.scaling import efficiencies, efficiencies_in_words, slowest_rank, with_rate


def judgement(verdict: Verdict | None, estimate: float = 2.0) -> Judgement:
    return Judgement(verdict, estimate, math.nan, math.nan, 1.2, 5, None, ("why",), 0)


def test_a_faster_single_device_is_not_worse_scaling():
    """The ratio of 2 misses its limit of 1.2; all devices keep their floor, and one alone is twice as fast."""
    found = with_rate(judgement(Verdict.FAIL), judgement(Verdict.PASS, 9000.0), certain=True, faster=2.0)

    assert Verdict.PASS is found.verdict
    assert "One device became faster" in found.reasons[0]
    assert "9000 samples/s" in found.reasons[0]
    assert "2.000 times" in found.reasons[0]
    assert 2.0 == found.estimate


@pytest.mark.parametrize(
    ("certain", "faster", "words"),
    [
        (True, 1.0, "does not explain the miss"),
        (True, 1.5, "does not explain the miss"),
        (True, None, "not known for certain"),
        (False, 2.0, "not known for certain"),
    ],
)
def test_a_kept_floor_alone_excuses_no_miss(certain, faster, words):
    """A floor is wide: several devices may be slower within it, with one device as fast as ever."""
    found = with_rate(judgement(Verdict.FAIL), judgement(Verdict.PASS), certain=certain, faster=faster)

    assert Verdict.FAIL is found.verdict
    assert words in found.reasons[-1]


@pytest.mark.parametrize("rate", [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.UNREFERENCED, Verdict.INVALID])
def test_a_miss_stays_one_without_a_kept_floor(rate):
    """Where the rate is low too, or nothing is known of it, the efficiency alone decides and the reasons say so."""
    found = with_rate(judgement(Verdict.FAIL), judgement(rate), certain=True, faster=2.0)

    assert Verdict.FAIL is found.verdict
    assert 2 == len(found.reasons)


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.INCONCLUSIVE, None])
def test_what_is_no_miss_is_left_alone(verdict):
    """A low rate makes no failure of an efficiency that is kept: floors are judged by their own tests."""
    kept = judgement(verdict)

    assert kept == with_rate(kept, judgement(Verdict.FAIL), certain=True, faster=2.0)


@given(st.dictionaries(st.integers(2, 64), st.floats(1e-3, 1e9)), st.floats(1e-3, 1e9))
def test_efficiency_is_throughput_over_devices_times_one(rates, one):
    """One device has an efficiency of 1."""
    found = efficiencies({1: one, **rates})

    assert 1.0 == found[1]
    for count, rate in rates.items():
        assert math.isclose(rate, found[count] * count * one)


@pytest.mark.parametrize("rates", [{2: 1.0}, {1: 0.0, 2: 1.0}, {1: 1.0, 2: -1.0}])
def test_without_one_device_there_is_no_efficiency(rates):
    """A rate that is missing or not positive is refused."""
    with pytest.raises(ValueError, match="efficiency needs"):
        efficiencies(rates)


def test_rates_are_told_with_their_efficiency():
    """The source's own figures: 18 V100s at 1785.3 samples/s against 101.84 on one."""
    assert "1: 101.8 samples/s, 18: 1785 samples/s (0.97)" == efficiencies_in_words({18: 1785.3, 1: 101.84})


def test_the_slowest_rank_is_held_against_the_median():
    """Which it is, and by how much."""
    assert (2, 1.5) == slowest_rank([1.0, 1.0, 1.5])
    assert 0 == slowest_rank([1.0, 1.0])[0]
    with pytest.raises(ValueError, match="no rank"):
        slowest_rank([])
