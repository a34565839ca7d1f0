from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.records import Event
from perf.report.tally import Tally, live_line, plain_line

ID = "mnist_cnn-single-1cpu-fp32-native+window"


def event(kind, time=0.0, **fields):
    """Return an event."""
    return Event(kind=kind, time=time, **fields)


def tallied(*events):
    """Return the count of events."""
    tally = Tally()
    for one in events:
        tally.add(one)
    return tally


def told(*events):
    """Return the plain lines of events, drawn one after the other."""
    tally = Tally()
    lines = []
    for one in events:
        seconds = tally.add(one)
        lines.append(plain_line(tally, one, seconds))
    return lines


def test_a_finished_launch_reads_as_in_the_manual():
    """Place among all launches, member, launch of its own, what it measured and how long it took."""
    before = [event(kind, 1.0, launch=str(n)) for n in range(6) for kind in ("start", "done")]
    lines = told(
        event("planned", group="mnist", total=42),
        *before,
        event("start", 100.0, member=ID, launch="x", number=3, total=5),
        event("done", 108.2, member=ID, launch="x", number=3, total=5, text="75.1 ms a step, 853 samples/s"),
    )
    assert f"[ 6/42] {ID}  launch 3 of 5 starts" == lines[-2]
    assert f"[ 7/42] {ID}  launch 3 of 5 ... 75.1 ms a step, 853 samples/s, 8 s" == lines[-1]


def test_every_kind_of_event_has_a_line():
    """Plans, extensions, failures, notes and even unknown kinds are told in words."""
    assert [
        "planned: mnist, 1 launch; 1 in all",
        "planned: resnet, 10 launches; 11 in all",
        "extended: a, 5 launches more; 16 in all: the estimate is on the failing side",
        "[ 1/16] a  launch 1 of 5 FAILED: exit status 137, 3 s",
        "[ 2/16] b ... done",
        "note: n1 is warm",
        "note: an event of the unknown kind 'weather' rain",
    ] == [
        line
        for line in told(
            event("planned", group="mnist", total=1),
            event("planned", group="resnet", total=10),
            event("extend", group="mnist", member="a", total=5, text="the estimate is on the failing side"),
            event("start", 1.0, member="a", launch="1", number=1, total=5),
            event("failed", 4.0, member="a", launch="1", number=1, total=5, text="exit status 137"),
            event("done", 5.0, member="b", launch="2"),
            event("note", text="n1 is warm"),
            event("weather", text="rain"),
        )
        if not line.endswith("starts")
    ]


def test_an_extension_adds_to_the_total():
    """Totals are the sum of what was planned, and grow with what a look asks for."""
    tally = tallied(event("planned", total=10), event("planned", total=4), event("extend", total=6))
    assert 20 == tally.total


def test_the_total_is_never_less_than_what_was_seen():
    """Launches that nobody planned aloud still count: '3 of 2' is never shown."""
    tally = tallied(
        event("planned", total=1),
        *(event("done", launch=str(n)) for n in range(3)),
        event("start", launch="x"),
    )
    assert (3, 4) == (tally.ended, tally.total)


def test_the_estimate_is_the_mean_time_of_what_is_left():
    """Two launches took 10 s on average; five wait and one has run for 4 s: 56 s are left."""
    tally = tallied(
        event("planned", total=8),
        event("start", 0.0, launch="1"),
        event("done", 8.0, launch="1"),
        event("start", 8.0, launch="2"),
        event("done", 20.0, launch="2"),
        event("start", 20.0, launch="3"),
    )
    assert 56.0 == tally.seconds_left(24.0)
    # One that takes longer than usual does not make the rest shorter.
    assert 50.0 == tally.seconds_left(500.0)


def test_workers_share_what_is_left():
    """Two xdist workers launch beside each other, so the rest takes half as long."""
    tally = tallied(
        event("planned", total=6),
        event("start", 0.0, launch="1", worker="gw0"),
        event("start", 0.0, launch="2", worker="gw1"),
        event("done", 10.0, launch="1", worker="gw0"),
        event("done", 10.0, launch="2", worker="gw1"),
    )
    assert 20.0 == tally.seconds_left(10.0)


def test_without_a_finished_launch_there_is_no_estimate():
    """A failed launch says nothing about how long a launch takes."""
    tally = tallied(
        event("planned", total=6),
        event("start", 0.0, launch="1"),
        event("failed", 600.0, launch="1"),
        event("start", 600.0, launch="2"),
    )
    assert tally.seconds_left(601.0) is None


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["planned", "extend", "start", "done", "failed", "note", "?"]),
            st.floats(0, 1e9),
            st.sampled_from(["", "1", "2", "3"]),
            st.integers(-5, 20),
        )
    )
)
def test_no_order_of_events_breaks_the_count(events):
    """Events may be lost, doubled or out of order: counts stay whole and the estimate is never negative."""
    tally = Tally()
    for kind, time, launch, total in events:
        one = event(kind, time, launch=launch, total=total, number=total)
        plain_line(tally, one, tally.add(one))
        assert 0 <= tally.ended + len(tally.running) <= tally.total
        left = tally.seconds_left(time)
        assert left is None or left >= 0.0
        live_line(tally, time, None)


def test_the_live_line_says_what_runs_and_what_is_left():
    """Place, launches left, time left, when that will be, failures, and the launch that runs longest."""
    tally = tallied(
        event("planned", total=42),
        event("start", 0.0, launch="1", worker="a"),
        event("done", 60.0, launch="1", worker="a"),
        event("start", 60.0, launch="2", worker="a"),
        event("failed", 70.0, launch="2", worker="a"),
        event("start", 80.0, member=ID, launch="3", number=3, total=5, worker="a"),
        event("start", 85.0, member="other", launch="4", worker="a"),
    )
    assert (
        f"[ 2/42] · 40 left, about 40 min 00 s, done 14:32 · 1 FAILED · {ID}  launch 3 of 5, 0.0 s and 1 more"
        == live_line(tally, 80.0, "14:32")
    )


@pytest.mark.parametrize(
    ("expected", "events"),
    [
        ("[0/0] · 0 left · between launches", []),
        ("[1/1] · 0 left · between launches", [event("start", launch="1"), event("done", launch="1")]),
    ],
)
def test_the_live_line_has_no_estimate_where_nothing_is_left(expected, events):
    """Before the first plan and after the last launch there is nothing to predict."""
    assert expected == live_line(tallied(*events), 0.0, "14:32")
