from __future__ import annotations

from perf.report.figures.launches import by_group, sides
from perf.report.figures.traces import traces


def groups(*launches):
    return by_group(sides(launches))


def test_every_rank_of_every_launch_is_a_line(launch):
    """Steps in milliseconds over their numbers, and a mark for each step above 1.5 medians."""
    steps = [[0.01, 0.01, 0.016], [0.01, 0.011, 0.01]]
    (figure,) = traces(
        groups(launch(step_seconds=steps, median_step_seconds=0.01), launch(step_seconds=steps))
    )
    lines = [series for series in figure.series if series.kind == "line"]
    marks = next(series for series in figure.series if series.name == "stalls")
    assert (4, [10.0, 10.0, 16.0]) == (len(lines), lines[0].y)
    assert ([2.0], [16.0], "x") == (marks.x, marks.y, marks.symbol)
    assert "every step is drawn" in figure.caption


def test_long_traces_say_how_they_were_thinned(launch):
    """The caption has the length of a run, the table counts every step, the longest one is drawn."""
    steps = [0.01] * 4999 + [0.05]
    (figure,) = traces(groups(launch(step_seconds=[steps], median_step_seconds=0.01)))
    assert len(figure.series[0].x) <= 600
    assert 50.0 == max(figure.series[0].y)
    assert "of every 17 steps" in figure.caption
    assert ("5000", "1 (0.0 %)") == (figure.table.rows[0][3], figure.table.rows[0][-1])


def test_many_traces_share_the_points(launch):
    """With a budget of 200 points ten traces of 1000 steps have no more than 20 each."""
    (figure,) = traces(groups(*(launch(step_seconds=[[0.01] * 1000]) for _ in range(10))), budget=200)
    assert all(len(series.x) <= 20 for series in figure.series)


def test_without_steps_there_is_no_picture(launch):
    """An audit times no step."""
    assert [] == traces(groups(launch(step_seconds=[[], []])))
