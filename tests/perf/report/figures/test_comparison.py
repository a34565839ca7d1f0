from __future__ import annotations

import pytest

from perf.report.figures.comparison import differences, environment_table, runs_forest
from perf.report.figures.launches import sides

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
