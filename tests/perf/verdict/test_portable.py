from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.outcome import Verdict
from perf.verdict.portable import (
    BOUNDS,
    FAR,
    Known,
    Step,
    fractions,
    governing,
    judge_portable,
    known_in_words,
    nearest_in_words,
)

STEP = Step(
    samples=10,
    flops=100,
    copied_bytes=20,
    operators=5,
    precision="bf16",
    ranks=4,
    gradient_bytes=80,
    gradients_of="net",
)
CARD = {
    "matmul_bf16": 4000.0,
    "matmul_fp32": 1.0,
    "host_to_device_pinned": 1000.0,
    "all_reduce_net": 600.0,
    "kernel_launches": 50.0,
}
positive = st.floats(1e-3, 1e12)


def test_a_fraction_is_the_time_of_a_resource_over_the_time_that_passed():
    """20 samples/s are 2 steps: 2000 FLOP, 400 bytes, twice 2 x 3/4 x 80 bytes of gradients, and 10 launches."""
    assert {
        "matrix": 2000 / 4000,
        "host_to_device": 400 / 1000,
        "all_reduce": 240 / 600,
        "kernel_launches": 10 / 50,
    } == pytest.approx(fractions(STEP, 20.0, CARD))


@given(positive, positive, positive)
def test_a_machine_twice_as_fast_at_everything_shows_the_same_fractions(speed, factor, rate):
    """That is what makes them portable."""
    card = dict.fromkeys(CARD, rate)
    faster = {name: value * factor for name, value in card.items()}

    assert fractions(STEP, speed, card) == pytest.approx(fractions(STEP, speed * factor, faster))


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"copied_bytes": 0}, "host_to_device"),
        ({"operators": None}, "kernel_launches"),
        ({"ranks": 1}, "all_reduce"),
        ({"gradients_of": "other"}, "all_reduce"),
        ({"precision": "default"}, "matrix"),
    ],
)
def test_what_a_step_does_not_need_or_nobody_measured_has_no_fraction(changes, gone):
    """It is left out, and not 0."""
    assert set(BOUNDS) - {gone} == set(fractions(dataclasses.replace(STEP, **changes), 20.0, CARD))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_rates_are_positive_numbers(bad):
    """A card with a 0 would make a fraction of infinity."""
    with pytest.raises(ValueError, match="samples_per_second is a positive number"):
        fractions(STEP, bad, CARD)
    with pytest.raises(ValueError, match="kernel_launches is a positive number"):
        fractions(STEP, 1.0, {**CARD, "kernel_launches": bad})


def test_the_nearest_bound_is_named_with_its_fraction():
    """Below a fifth of everything there is another explanation, and that is said."""
    assert "nearest bound: the all-reduce of its gradients, at 61 %" == nearest_in_words(
        {"matrix": 0.1, "all_reduce": 0.61}
    )
    assert nearest_in_words({"matrix": FAR / 2}).startswith("far from every bound that was measured")
    assert "lacks the rates" in nearest_in_words({})


def test_a_variant_is_held_against_the_bound_that_is_nearest_elsewhere():
    """The largest median among the bounds that all known systems have; none without systems, or without a bound."""
    one = Known("a", {"matrix": 0.5, "kernel_launches": 0.2})
    two = Known("b", {"matrix": 0.1, "kernel_launches": 0.3, "all_reduce": 0.9})

    assert "matrix" == governing([one, two])
    assert "all_reduce" == governing([two])
    assert governing([]) is None
    assert governing([one, Known("c", {"all_reduce": 0.5})]) is None
    assert ["matrix 10 to 50 % on 2", "all_reduce 90 % on 1", ""] == [
        known_in_words(known) for known in ([one, two], [two], [])
    ]


# --- the judgement


def test_without_a_known_system_a_fraction_is_unreferenced():
    """It is shown and held against nothing."""
    judgement = judge_portable([0.3, 0.1, 0.2], [], tolerance=0.5, cap=10)

    assert (Verdict.UNREFERENCED, 0.2, 0.1, 0.3) == (
        judgement.verdict,
        judgement.estimate,
        judgement.low,
        judgement.high,
    )
    assert Verdict.UNREFERENCED is judge_portable([], [], tolerance=0.5, cap=1).verdict


def test_a_fraction_within_the_tolerance_passes():
    """The floor is the tolerance times the smallest known fraction."""
    judgement = judge_portable([0.21, 0.22, 0.205, 0.21, 0.23], [0.5, 0.4, 0.6], tolerance=0.5, cap=10)

    assert (
        Verdict.PASS is judgement.verdict is judge_portable([0.21] * 5, [0.4], tolerance=0.5, cap=5).verdict
    )
    assert (0.2, 0.21) == pytest.approx((judgement.limit, judgement.estimate))
    assert judgement.low <= judgement.estimate <= judgement.high


def test_a_fraction_far_below_fails_after_ten_launches():
    """Half of the floor in every launch is no noise; five launches ask for more first."""
    launches = [0.1, 0.101, 0.099, 0.1, 0.102, 0.1, 0.1, 0.098, 0.1, 0.1]

    assert (None, 10) == (
        (first := judge_portable(launches[:5], [0.4], tolerance=0.5, cap=10)).verdict,
        first.wants,
    )
    judgement = judge_portable(launches, [0.4], tolerance=0.5, cap=10)
    assert Verdict.FAIL is judgement.verdict
    assert judgement.high < judgement.limit
    assert any(
        "0.5 times the smallest fraction of 1 known system, 0.4" in reason for reason in judgement.reasons
    )


def test_one_launch_decides_nothing():
    """As for every other limit."""
    assert Verdict.INCONCLUSIVE is judge_portable([0.01], [0.4], tolerance=0.5, cap=1).verdict


@pytest.mark.parametrize("tolerance", [0.0, -0.1, 1.1, math.nan])
def test_a_tolerance_is_a_part(tolerance):
    """Above 1 a system would have to be better than the known ones."""
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        judge_portable([0.1], [0.4], tolerance=tolerance, cap=5)


@pytest.mark.parametrize(("values", "known"), [([0.0], [0.4]), ([0.1], [-1.0]), ([math.nan], [0.4])])
def test_fractions_are_positive(values, known):
    """0 is no fraction that was measured."""
    with pytest.raises(ValueError, match="a fraction is a positive number"):
        judge_portable(values, known, tolerance=0.5, cap=5)
