from __future__ import annotations

import pytest

from perf.report.figures.comparison import differences, environment_table, runs_forest, stacks_forests
from perf.report.figures.launches import sides
from perf.report.summary import summarize

LETTERS = {"old": "A", "new": "B"}


def test_a_variant_of_two_runs_is_a_ratio(launch):
    """Half the time is 0.5; what only one run has, and audits, are not held against anything."""
    found = [launch(run="old", median_step_seconds=0.2), launch(run="new", median_step_seconds=0.1)]
    found += [launch(run="new", variant="only"), *(launch(run=run, plan="audit") for run in LETTERS)]
    figure = runs_forest(sides(found, LETTERS))
    assert ([pytest.approx(0.5)], 1) == (figure.series[0].x, len(figure.table.rows))
    assert "Nothing here is judged" in figure.caption


def test_one_run_is_compared_with_nothing(launch):
    """Its variants have no other side."""
    assert runs_forest(sides([launch()])) is None


def test_environments_are_flat_and_their_differences_stand_alone():
    """Every leaf has its path; what is null, absent or equal is told apart."""
    both = {
        "run A": {"stack": {"torch": "2.6", "hip": None}, "gpus": [{"name": "H100"}]},
        "run B": {"stack": {"torch": "2.7", "hip": None}, "gpus": [{"name": "H100"}, {"name": "H100"}]},
    }
    assert [("gpus.1.name", "–", "H100"), ("stack.torch", "2.6", "2.7")] == differences(both).rows
    assert ("stack.hip", "null", "null") in environment_table(both).rows
    assert ("fact", "run A", "run B") == differences(both).columns


def test_two_stacks_are_a_forest_a_metric(verdict):
    """Ratios have a logarithmic axis with each row's own limit, shares of stalls a plain one; others are left out."""
    sides = {"variant": "v@new", "against": "v@old", "group": "compare@v", "launches": 10}
    rows = [
        verdict(
            **sides,
            metric="step_time",
            unit="ratio",
            estimate=1.05,
            low=1.03,
            high=1.07,
            limit=1.02,
            verdict="fail",
        ),
        verdict(
            **{**sides, "variant": "w@new", "against": "w@old"},
            metric="step_time",
            unit="ratio",
            estimate=0.9,
            low=0.89,
            high=None,
            limit=1.05,
            verdict="pass",
        ),
        verdict(
            **sides, metric="stall_share", unit="share", estimate=-0.001, low=-0.01, high=0.0, limit=0.01
        ),
        verdict(metric="ddp_overhead", unit="ratio", estimate=1.0),
    ]
    steps, stalls = stacks_forests(summarize([], rows).verdicts)
    assert (("v", "w"), True) == (steps.y.categories, steps.x.log)
    assert {"fail": [1.05], "pass": [0.9]} == {series.name: series.x for series in steps.series}
    assert [(1.0, None), (1.02, 0), (1.05, 1)] == [(line.at, line.category) for line in steps.lines]
    assert ("v", "fail") == (steps.table.rows[0][0], steps.table.rows[0][-1])
    assert (False, 0.0, [-0.001]) == (stalls.x.log, stalls.lines[0].at, stalls.series[0].x)


def test_without_a_comparison_there_is_no_forest(verdict):
    """Nor where a comparison had nothing to estimate."""
    unmeasured = verdict(variant="v@new", against="v@old", metric="step_time", unit="ratio", estimate=None)
    assert [] == stacks_forests(summarize([], [verdict(), unmeasured]).verdicts)
