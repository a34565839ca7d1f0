from __future__ import annotations

import pytest

from perf.report.account import Held, held, held_for, spent


def test_wall_time_is_start_window_and_rest(launch):
    """Parts add up to the launches' wall time, and the longest group stands first."""
    startup = [
        {"interpreter": 0.5, "imports": 0.75, "data": 0.25, "until_data": 0.2, "until_warm_up": 0.5},
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


def test_gpus_are_held_from_start_to_end_on_every_node(launch):
    """Two nodes of four GPUs for ten seconds are 80 GPU seconds, of which the window's are timed."""
    found = held([launch(gpus=4, nodes=2, launch_seconds=10.0, window_seconds=3.0), launch(gpus=0)])

    assert Held(80.0, 24.0) == found
    assert pytest.approx(0.3) == found.share
    assert held([launch(gpus=0)]).share is None


def test_a_verdict_holds_what_its_sides_and_its_own_launches_did(launch, verdict):
    """Launches added for another test, of another variant or group, and profiled ones are not of it."""
    one = {"gpus": 1, "launch_seconds": 10.0, "window_seconds": 2.0, "group": "g"}
    launches = [
        launch(variant="new", **one),
        launch(variant="base", **one),
        launch(variant="new", escalation="mine", **one),
        launch(variant="new", escalation="another", **one),
        launch(variant="third", **one),
        launch(variant="new", **{**one, "group": "h"}),
        launch(variant="new", phase_seconds=[{}], **one),
    ]

    found = held_for(verdict(group="g", variant="new+epochs", against="base@old", test="mine"), launches)

    assert Held(30.0, 6.0) == found
