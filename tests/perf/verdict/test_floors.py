from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perf.verdict.floors import Occasion, computed_tolerance, floor_from
from perf.verdict.trials import floor_trial

few = settings(max_examples=50)
rates = st.lists(st.floats(10.0, 1000.0), min_size=5, max_size=7)
histories = st.lists(rates, min_size=1, max_size=8)


def occasions(*medians: float, node: str | None = None) -> list[Occasion]:
    """Return occasions with these medians, each on its own date and node."""
    return [
        Occasion(
            f"2026-11-{place + 1:02d}",
            node or f"n{place + 1}",
            tuple(median * f for f in (0.99, 0.999, 1, 1.001, 1.01)),
        )
        for place, median in enumerate(medians)
    ]


def test_one_occasion_gives_the_prior_and_is_provisional():
    """A single occasion has the prior's spread, a tolerance of 7.9 % in log units, and is provisional."""
    floor = floor_from(occasions(1000.0))
    assert floor.provisional
    assert pytest.approx(0.015) == floor.spread
    assert pytest.approx(stats.t.ppf(0.99, 4) * 0.015 * math.sqrt(2)) == floor.tolerance
    assert pytest.approx(0.079, abs=6e-4) == floor.tolerance
    assert pytest.approx(1000.0 * math.exp(-floor.tolerance)) == floor.bound


def test_two_occasions_are_allowed_with_a_wide_tolerance():
    """Two agreeing occasions give 5.5 %, and are not provisional."""
    floor = floor_from(occasions(1000.0, 1001.0))
    assert not floor.provisional
    assert pytest.approx(0.055, abs=1e-3) == floor.tolerance


@few
@given(histories)
def test_the_floor_follows_its_formula(history):
    """Centre, spread, tolerance and bound are the published formulas, with scipy's t quantile."""
    given_ = [Occasion("2026-11-01", f"n{place}", tuple(values)) for place, values in enumerate(history)]
    floor = floor_from(given_)
    medians = [statistics.median(math.log(x) for x in values) for values in history]
    count = len(medians)
    between = statistics.variance(medians) if count > 1 else 0.0
    spread = math.sqrt((4 * 0.015**2 + (count - 1) * between) / (count + 3))
    reach = float(stats.t.ppf(0.99, count + 3)) * spread * math.sqrt(1 + 1 / count)
    assert pytest.approx(spread) == floor.spread
    assert pytest.approx(max(0.03, reach)) == floor.tolerance
    assert pytest.approx(statistics.median(medians)) == math.log(floor.centre)
    assert pytest.approx(math.exp(statistics.median(medians) - max(0.03, reach))) == floor.bound


@few
@given(histories, st.floats(1e-3, 1e3))
def test_the_unit_of_the_rate_does_not_matter(history, scale):
    """Scaling every rate scales the floor, and leaves the tolerance."""
    one = floor_from([Occasion("d", "n", tuple(values)) for values in history])
    other = floor_from([Occasion("d", "n", tuple(scale * x for x in values)) for values in history])
    assert pytest.approx(scale * one.bound) == other.bound
    assert pytest.approx(one.tolerance) == other.tolerance


def test_agreeing_occasions_narrow_the_tolerance_down_to_three_percent():
    """The tolerance falls as agreeing occasions gather, and stops at 3 %."""
    tolerances = [computed_tolerance([math.log(1000.0)] * count)[1] for count in range(1, 40)]
    assert sorted(tolerances, reverse=True) == tolerances
    assert 0.03 == tolerances[-1]
    assert tolerances[2] > 0.03


def test_one_slow_occasion_does_not_move_the_centre():
    """The centre is the median over occasions."""
    assert pytest.approx(1000.0) == floor_from(occasions(1000.0, 700.0, 1000.0)).centre


def test_a_metric_where_lower_is_better_gets_a_ceiling():
    """For a step time the bound lies above the centre, and a miss is above the bound."""
    floor = floor_from(occasions(0.1, 0.1, 0.1), higher_is_better=False)
    assert pytest.approx(0.1 * math.exp(floor.tolerance)) == floor.bound
    assert floor.missed_by(0.12)
    assert not floor.missed_by(0.05)
    assert not floor.missed_by(floor.bound)


def test_a_written_tolerance_replaces_the_computed_one():
    """A relative tolerance from the reference file is taken as it stands."""
    assert pytest.approx(900.0) == floor_from(occasions(1000.0, 1000.0), tolerance=0.1).bound
    assert pytest.approx(990.0) == floor_from(occasions(1000.0, 1000.0), tolerance=0.01).bound


def test_too_few_launches_name_the_occasion():
    """An occasion with fewer than 5 launches is refused, unless that is waived."""
    short = [Occasion("2026-11-01", "n7", (1.0, 1.0, 1.0, 1.0))]
    with pytest.raises(ValueError, match="2026-11-01 on n7 has 4 launches; a reference needs 5"):
        floor_from(short)
    assert 1 == floor_from(short, least_launches=1).occasions


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.1, math.nan])
def test_an_impossible_tolerance_is_refused(tolerance):
    """A written tolerance must be a relative loss between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        floor_from(occasions(1000.0), tolerance=tolerance)


def test_nothing_and_nonsense_are_refused():
    """No occasion, and a rate that is not positive, are errors."""
    with pytest.raises(ValueError, match="at least one occasion"):
        floor_from([])
    with pytest.raises(ValueError, match="occasion of 2026-11-02, launch 5 of 5"):
        floor_from([Occasion("2026-11-02", "", (1.0, 1.0, 1.0, 1.0, 0.0))])


def test_confirmed_false_fails_are_rarer_than_one_in_ten_thousand():
    """With a date sd of 0.5 % and a node sd of 1 %, three occasions hardly ever fail an unchanged system twice."""
    assert floor_trial(3, 0.0, 100_000).failed < 1e-4


@pytest.mark.parametrize(("loss", "expected"), [(0.05, 0.37), (0.08, 0.98), (0.10, 1.00)])
def test_losses_fail_as_often_as_stated(loss, expected):
    """Three occasions fail a loss of 5, 8 and 10 % in 37, 98 and 100 % of cases, to 2 points."""
    assert pytest.approx(expected, abs=0.02) == floor_trial(3, loss, 20_000).failed
