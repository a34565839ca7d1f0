from __future__ import annotations

import pytest
from scipy import stats

from perf.verdict.noise import KINDS
from perf.verdict.simulate import POWER_ROWS, power_row
from perf.verdict.trials import Rates, ab_trial, fixed_trial, floor_trial, noise

BUDGET = 2.2e-4

# The published power of the rules: fail / pass % by true slowdown 0, 1, 2, 3, 5, 10 %, and mean launches a side.
TABLE = {
    ("clean", 0.001): "0/100(5) 44/56(6) 100/0(7) 100/0(7) 100/0(7) 100/0(7)",
    ("clean", 0.003): "0/100(5) 37/63(8) 100/0(8) 100/0(7) 100/0(7) 100/0(7)",
    ("clean", 0.008): "0/100(6) 20/62(11) 98/1(12) 100/0(10) 100/0(8) 100/0(7)",
    ("clean", 0.013): "0/88(8) 4/37(12) 50/3(15) 97/0(13) 100/0(10) 100/0(8)",
    ("clean", 0.05): "0/13(12) 0/6(13) 0/3(14) 1/1(15) 10/0(16) 83/0(14)",
    ("clean", 0.10): "0/6(12) 0/5(13) 0/3(13) 0/2(14) 1/1(15) 9/0(16)",
    ("disturbed", 0.003): "0/99(6) 36/63(9) 96/0(11) 97/0(11) 97/0(10) 99/0(10)",
}


@pytest.mark.parametrize("row", POWER_ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_power_table_is_within_two_points(row):
    """Each cell of the power table comes out within 2 points, and the launches within one."""
    rates = power_row(*row, pairs=6_000)
    assert len(TABLE) == len(POWER_ROWS)
    for cell, rate in zip(TABLE[row].split(), rates, strict=True):
        fail, rest = cell.split("/")
        passed, launches = rest.rstrip(")").split("(")
        assert pytest.approx(float(fail), abs=2.0) == 100.0 * rate.fail
        assert pytest.approx(float(passed), abs=2.0) == 100.0 * rate.passed
        assert pytest.approx(float(launches), abs=1.0) == rate.mean_launches


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name != "steps"], ids=lambda kind: kind.name)
def test_no_noise_breaks_the_promise(kind):
    """No false fails beyond the budget's luck of 1 in 10,000, and at most 5 % wrong passes, at the worst spread."""
    pairs = 8_000
    same, slower = ab_trial(kind, 0.05, (0.0, 0.02), pairs)
    assert same.fails <= stats.binom.ppf(1 - 1e-4, pairs, BUDGET)
    assert slower.passed < 0.05


def test_a_changed_rule_would_be_seen():
    """The trial has teeth: with a margin of almost nothing the wrong-pass promise still holds, but power changes."""
    (narrow,) = ab_trial(noise("clean"), 0.008, (0.005,), 2_000, margin=0.002)
    (wide,) = ab_trial(noise("clean"), 0.008, (0.005,), 2_000, margin=0.05)
    assert narrow.passed < 0.05
    assert wide.passed > 0.99


def test_fixed_limits_have_their_power():
    """Limits pass 99 % at 2 sds inside, fail 85-88 % at 2 and 99.8 % at 3 sds outside, and neither on the limit."""
    inside, on, two, three = fixed_trial(noise("clean"), 0.01, (-2.0, 0.0, 2.0, 3.0), 8_000)
    assert inside.passed > 0.99
    assert 0.84 < two.fail < 0.90
    assert three.fail > 0.998
    assert on.fail < 2e-3
    assert on.passed < 0.05


def test_the_same_call_gives_the_same_counts():
    """Seeds are fixed."""
    assert ab_trial(noise("clean"), 0.01, (0.02,), 500) == ab_trial(noise("clean"), 0.01, (0.02,), 500)
    assert floor_trial(3, 0.05, 500) == floor_trial(3, 0.05, 500)


def test_rates_add_up():
    """Counts of chunks add, and shares are of the cases."""
    total = Rates(10, 1, 5, 60) + Rates(30, 3, 15, 140)
    assert (0.1, 0.5, 5.0) == (total.fail, total.passed, total.mean_launches)


def test_a_single_occasion_and_a_single_node_are_told_apart():
    """One occasion never fails an unchanged system; ten dates of one node miss others in 2 to 4 %."""
    assert 0.0 == floor_trial(1, 0.0, 5_000).failed
    assert 0.02 < floor_trial(10, 0.0, 5_000, one_node=True).missed < 0.04
