from __future__ import annotations

from perf.report.figures.phases import phases


def test_the_slowest_rank_is_stacked(launch):
    """Of two ranks the one with the longer sum of medians is drawn, in milliseconds, with shares in the table."""
    timed = launch(
        phase_seconds=[
            {"data": [0.001], "forward": [0.002]},
            {"data": [0.001, 0.003, 0.002], "forward": [0.006]},
        ]
    )
    found = phases([launch(), timed])
    assert [("data", [2.0]), ("forward", [6.0])] == [(series.name, series.x) for series in found.series]
    assert ("1", "2.000 ms, 25.0 %", "6.000 ms, 75.0 %") == found.table.rows[0][2:]
    assert found.stacked


def test_nothing_timed_is_no_picture(launch):
    """Neither a plain launch nor one that is not valid has phases to show."""
    assert (
        phases(
            [
                launch(),
                launch(valid=False, phase_seconds=[{"data": [1.0]}]),
                launch(phase_seconds=[{"data": []}]),
            ]
        )
        is None
    )
