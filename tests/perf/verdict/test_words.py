from __future__ import annotations

import math

import pytest

from perf.verdict.words import change, percent, points


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        (0.0312, "3.1 %"),
        (0.0, "0.00 %"),
        (0.00999, "1.0 %"),
        (-0.0042, "-0.42 %"),
        (1.5, "150.0 %"),
        (math.nan, "an unknown share"),
        (math.inf, "more than can be said"),
    ],
)
def test_percentages_read_aloud(fraction, expected):
    """A percentage has one digit after the point, below 1 % two."""
    assert expected == percent(fraction)


def test_points_and_changes():
    """Differences of shares are points; differences of logarithms are relative changes."""
    assert "1.0 points" == points(0.01)
    assert pytest.approx(0.02) == change(math.log(1.02))
