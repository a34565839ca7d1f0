from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perf.report.figures.thinning import share_out, thin

VALUES = st.lists(st.floats(0.0, 10.0), max_size=300)


@given(VALUES, st.integers(0, 80))
def test_thinning_loses_no_extreme_and_invents_nothing(values, points):
    """What is drawn are values at their own places, in order, at most as many as allowed, the extremes among them."""
    found = thin(values, points)
    assert found.values == [values[place] for place in found.places]
    assert sorted(set(found.places)) == found.places
    assert len(found.places) <= max(4, points)
    if values:
        assert (min(values), max(values)) == (min(found.values), max(found.values))


@given(VALUES, st.integers(4, 80))
def test_every_run_keeps_its_own_longest_value(values, points):
    """No stall is lost: of each run of neighbours that share two points, the longest is drawn."""
    found = thin(values, points)
    drawn = set(found.places)
    for start in range(0, len(values), found.run):
        part = range(start, min(start + found.run, len(values)))
        assert max(values[place] for place in part) == max(values[place] for place in part if place in drawn)


def test_a_short_trace_stays_whole():
    """What fits is not touched."""
    assert (1, [3.0, 1.0, 2.0]) == (thin([3.0, 1.0, 2.0], 4).run, thin([3.0, 1.0, 2.0], 4).values)


def test_points_are_shared_out_between_two_ends():
    """Few traces get as many points as help, very many as few as still tell."""
    assert (600, 50, 16, 600) == tuple(share_out(1000, n, 16, 600) for n in (1, 20, 5000, 0))
