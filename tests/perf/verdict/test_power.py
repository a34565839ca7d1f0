from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.power import below_power_floor

watts = st.floats(1.0, 1000.0)


def test_a_busy_gpu_at_low_power_is_told_with_both_numbers():
    """Busy and far below the reference: it waits."""
    (reason,) = below_power_floor([210.0, 200.0, 190.0], [99.0, 98.0, 97.0], centre=600.0, tolerance=0.1)

    assert reason.startswith("The GPU was 98 % busy and drew 200 W,")
    assert "the reference's 600 W (down to 543 W is ordinary)" in reason


@pytest.mark.parametrize(
    ("drawn", "busy"),
    [
        ([590.0, 600.0], [99.0, 99.0]),
        ([545.0, 545.0], [99.0, 99.0]),
        ([200.0, 200.0], [60.0, 60.0]),
        ([200.0, None], [99.0, 99.0]),
        ([200.0, 200.0], [99.0, None]),
        ([], []),
    ],
)
def test_ordinary_idle_or_unknown_gives_no_reason(drawn, busy):
    """Power within the tolerance, a GPU with nothing to do, and readings that can't be had accuse nobody."""
    assert () == below_power_floor(drawn, busy, centre=600.0, tolerance=0.1)


@given(st.lists(watts, min_size=2, max_size=9), watts, st.floats(0.01, 1.0))
def test_more_power_never_makes_a_reason(drawn, centre, tolerance):
    """Doubling what every launch drew can only take the reason away."""
    busy = [100.0] * len(drawn)
    now = below_power_floor(drawn, busy, centre=centre, tolerance=tolerance)
    more = below_power_floor([2 * w for w in drawn], busy, centre=centre, tolerance=tolerance)

    assert len(more) <= len(now)


@pytest.mark.parametrize(("centre", "tolerance"), [(0.0, 0.1), (600.0, 0.0), (-1.0, 0.1)])
def test_a_reference_without_power_or_spread_is_an_error(centre, tolerance):
    """Nothing can be held against it."""
    with pytest.raises(ValueError, match="must be positive"):
        below_power_floor([1.0], [1.0], centre=centre, tolerance=tolerance)
