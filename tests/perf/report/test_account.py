from __future__ import annotations

import pytest

from perf.report.account import spent


def test_wall_time_is_start_window_and_rest(launch):
    """Parts add up to the launches' wall time, and the longest group stands first."""
    startup = [
        {"interpreter": 0.5, "imports": 1.0, "until_data": 0.2, "until_warm_up": 0.5},
        {"imports": 0.5},
    ]
    rows = spent([launch(group="a"), launch(group="b", startup_seconds=startup), launch(group="b")])
    assert [("b", 2, 2.0, 4.0), ("a", 1, 0.0, 2.0)] == [
        (r.group, r.launches, r.start, r.window) for r in rows
    ]
    assert [pytest.approx(16.4), pytest.approx(8.2)] == [row.total for row in rows]


def test_a_window_longer_than_its_launch_is_cut(launch):
    """A record from elsewhere may say anything; no part is negative."""
    (row,) = spent([launch(launch_seconds=1.0, window_seconds=5.0)])
    assert (0.0, 1.0, 0.0) == (row.start, row.window, row.rest)
