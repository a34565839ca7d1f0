from __future__ import annotations

import math

import pytest

from perf.verdict.words import change, percent, points, rounded


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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (25205.4, "25205"),
        (1_234_567.0, "1234567"),
        (999.96, "1000"),
        (93.444, "93.44"),
        (0.5, "0.5"),
        (0.0, "0"),
    ],
)
def test_rates_have_no_exponent(value, expected):
    """2.52e+04 samples/s is no number that a person reads at a glance."""
    assert expected == rounded(value)
