"""Nominating change points."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.changepoints import excursions, incidents, level_changes, pooled_noise


def nights(seed: int, change: float = 0.0, outliers: float = 0.0) -> list[float]:
    """Return 60 nights with a noise of 1 %, a change after night 45, and some slow nights, as logarithms."""
    source = random.Random(seed)
    return [
        source.gauss(0.0, 0.01)
        + (math.log1p(change) if night >= 45 else 0.0)
        - (source.uniform(0.03, 0.2) if source.random() < outliers else 0.0)
        for night in range(60)
    ]


def test_noise_alone_is_hardly_ever_nominated():
    """At most 2 of 200 series of 60 nights, also with one slow night in fifty."""
    for outliers in (0.0, 0.02):
        assert sum(bool(level_changes(nights(seed, outliers=outliers))) for seed in range(200)) <= 2


def test_a_lasting_change_of_five_per_cent_is_nominated_where_it_begins():
    """In 190 of 200 series, within two nights of the right one."""
    found = [level_changes(nights(seed, change=-0.05)) for seed in range(200)]
    right = [any(abs(one.place - 45) <= 2 and one.change < 0 for one in places) for places in found]
    assert sum(right) >= 190


def test_a_single_slow_night_is_not_nominated():
    """Nor two: a third must agree."""
    quiet = [0.001 * (place % 3) for place in range(30)]
    for slow in (1, 2):
        assert [] == level_changes(quiet + [-0.2] * slow + quiet[:10])
    assert [30] == [one.place for one in level_changes(quiet + [-0.2] * 3)]


def test_an_excursion_is_off_both_neighbours():
    """The smaller of the two; part of a rise is none, and the ends have one neighbour only."""
    assert [0.0, -3.0, 0.0, 0.0] == excursions([5.0, 2.0, 8.0, 9.0])[:4]
    assert [0.0, 0.0, 0.0] == excursions([1.0, 2.0, 3.0])
    assert [] == excursions([])


def test_incidents_need_agreement():
    """One series of many is noise of its own; a quarter of them is not."""
    assert [] == incidents([-0.2, 0.0, 0.0], 0.01)
    assert [0, 2] == incidents([-0.2, 0.0, -0.1, 0.01], 0.01)
    assert [] == incidents([-0.2, 0.1], 0.01)
    assert [] == incidents([-0.2, -0.2, *[0.0] * 20], 0.01)


def test_pooled_noise_leaves_changes_of_stack_out():
    """What a new stack brought is no noise."""
    series = [[("a", 0.0), ("a", 0.01), ("b", 0.5), ("b", 0.51)]]
    assert 1.4826 * 0.01 / math.sqrt(2) == pytest.approx(pooled_noise(series))
    assert pooled_noise([]) == 0.0


@given(st.lists(st.floats(-5, 5), max_size=40))
def test_any_series_can_be_read(values):
    """Places lie inside the series, and each is nominated once."""
    places = [one.place for one in level_changes(values)]
    assert sorted(set(places)) == places
    assert all(0 <= place < len(values) for place in places)
