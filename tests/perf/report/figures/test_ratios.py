from __future__ import annotations

import pytest

from perf.report.figures.launches import sides
from perf.report.figures.ratios import Ratio, forest, is_floor, limits_forest, ratio
from perf.report.summary import summarize


def side_of(launch, *seconds, variant="v"):
    return sides([launch(variant=variant, median_step_seconds=s) for s in seconds])[0]


def test_a_ratio_has_bounds_where_launches_allow_them(launch):
    """Twice the time is 2; three launches a side give bounds of 5 %, two give none."""
    base, new = (1.0, 1.01, 1.02), (2.0, 2.02, 2.04)
    found = ratio(side_of(launch, *new), side_of(launch, *base))
    assert (pytest.approx(2.0), (3, 3)) == (found.estimate, found.launches)
    assert found.low < 2.0 < found.high
    few = ratio(side_of(launch, *new[:2]), side_of(launch, *base[:2]))
    assert (None, None, "2.000") == (few.low, few.high, few.text)
    assert ratio(side_of(launch, 0.0), side_of(launch, 1.0)) is None


def test_a_forest_needs_a_row():
    """Each ratio is a row with its interval and a table row; nothing is no picture."""
    assert forest("k", "t", "c", []) is None
    found = forest("k", "t", "c", [("new", "old", Ratio(0.9, 0.8, None, (5, 4)))])
    assert (("new",), [0.9], [0.8], [None]) == (
        found.y.categories,
        found.series[0].x,
        found.series[0].low,
        found.series[0].high,
    )
    assert [("new", "old", "0.9000", "5 and 4")] == found.table.rows


def rows(*verdicts):
    return summarize([], verdicts).verdicts


def test_every_judgement_is_drawn_in_limits(verdict):
    """1.31 against 1.0 is 1.31 limits; a floor is turned over, so that beyond the limit is right for both."""
    floor = {
        "metric": "throughput",
        "unit": "samples/s",
        "estimate": 50.0,
        "low": 40.0,
        "high": 60.0,
        "limit": 100.0,
    }
    found = limits_forest(rows(verdict(), verdict(verdict="pass", **floor)))
    by_name = {series.name: series for series in found.series}
    assert ([1.31], [1.24], [1.38]) == (by_name["fail"].x, by_name["fail"].low, by_name["fail"].high)
    assert ([2.0], [100 / 60], [2.5]) == (by_name["pass"].x, by_name["pass"].low, by_name["pass"].high)
    assert ("x", "circle") == (by_name["fail"].symbol, by_name["pass"].symbol)


def test_what_has_no_limit_or_no_estimate_is_not_drawn(verdict):
    """Unreferenced numbers have nothing to be divided by."""
    assert limits_forest(rows(verdict(limit=None), verdict(estimate=None), verdict(estimate=-1.0))) is None


def test_judgements_of_one_name_stay_apart(verdict):
    """A category is its name, so a second one of the same name gets a number."""
    assert 2 == len(set(limits_forest(rows(verdict(), verdict())).y.categories))


def test_rates_and_efficiencies_have_floors(verdict):
    """Their limits are least values; all else has largest values."""
    wanted = [("throughput", "samples/s"), ("scaling_efficiency", "share"), ("loader_share", "share")]
    assert [True, True, False] == [
        is_floor(row) for row in rows(*(verdict(metric=m, unit=u) for m, u in wanted))
    ]
