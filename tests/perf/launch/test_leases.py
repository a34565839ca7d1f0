from __future__ import annotations

import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.leases import (
    CARD,
    LeaseError,
    Leases,
    LockError,
    Request,
    Ticket,
    card_name,
    grant,
    in_turn,
    parse_ticket,
    prefer,
    visible_words,
)
from perf.machine import REPOSITORY

FOUR = ("a", "b", "c", "d")

HOLD = """
import sys
from pathlib import Path
from perf.launch.leases import Leases, Request
with Leases("other-run", Path(sys.argv[1])).lease(Request(int(sys.argv[2]), tuple(sys.argv[3].split(",")))) as cards:
    print(",".join(cards), flush=True)
    sys.stdin.readline()
"""

STREAM = """
import sys, time
from pathlib import Path
from perf.launch.leases import Leases, Request
leases = Leases("stream", Path(sys.argv[1]), lambda text: None)
while not Path(sys.argv[1], "enough").exists():
    with leases.lease(Request(1, ("a", "b", "c", "d"))):
        time.sleep(0.05)
"""


@pytest.fixture
def folder(tmp_path):
    """Return where the locks lie: a folder that is not there yet."""
    return tmp_path / "stackproof"


@pytest.fixture
def start(folder):
    """Return a function that starts a process with a text, in the folder of the locks."""
    started = []

    def run(text, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", text, str(folder), *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def hold(start, count, allowed):
    """Start a process that holds cards; return it and them."""
    process = start(HOLD, str(count), ",".join(allowed))
    return process, process.stdout.readline().strip().split(",")


@pytest.mark.parametrize(
    ("request_", "ahead", "free", "expected"),
    [
        (Request(1, FOUR), [], FOUR, ("a",)),
        (Request(2, ("c", "b", "a")), [], FOUR, ("c", "b")),
        (Request(2, FOUR), [], ("b",), None),
        (Request(1, FOUR), [Request(4, FOUR)], ("b", "c", "d"), None),
        (Request(1, FOUR), [Request(2, ("a", "b"))], ("b", "c"), ("c",)),
        (Request(1, FOUR), [Request(1, FOUR)], ("b", "c"), ("c",)),
        (Request(4, FOUR), [], FOUR, FOUR),
        (Request(1, ("a",)), [], ("b", "c"), None),
    ],
)
def test_a_request_gets_what_those_before_it_leave(request_, ahead, free, expected):
    """Cards come in the order of preference; an earlier request keeps back what it could use, sufficient or not."""
    assert expected == grant(request_, ahead, free)


requests = st.builds(
    Request, st.integers(0, 4), st.lists(st.sampled_from(FOUR), unique=True, min_size=0).map(tuple)
)


@given(requests, st.lists(requests, max_size=4), st.sets(st.sampled_from(FOUR)))
def test_what_is_granted_is_free_allowed_and_as_much_as_was_wanted(mine, ahead, free):
    """Whatever waits, a grant keeps to the request, and two requests are never granted one card."""
    found = grant(mine, ahead, free)
    if found is None:
        return
    assert mine.count == len(found) == len(set(found))
    assert set(found) <= free & set(mine.allowed)
    for place, earlier in enumerate(ahead):
        theirs = grant(earlier, ahead[:place], free)
        assert not set(theirs or ()) & set(found)


@given(st.lists(st.sampled_from((1, 2, 4)), min_size=1, max_size=12), st.data())
def test_every_request_is_served_in_turn_however_long_others_hold_theirs(counts, data):
    """In any order of releases each request is served, and none that wants all is overtaken by one that came later."""
    waiting = [Request(count, FOUR) for count in counts]
    held: list[tuple[str, ...]] = []
    served = []
    while waiting or held:
        free = set(FOUR) - {card for cards in held for card in cards}
        granted = next(
            (
                (place, cards)
                for place, mine in enumerate(waiting)
                if (cards := grant(mine, waiting[:place], free)) is not None
            ),
            None,
        )
        if granted is not None:
            place, cards = granted
            assert not any(earlier.count == len(FOUR) for earlier in waiting[:place])
            served.append(waiting.pop(place))
            held.append(cards)
        else:
            held.pop(data.draw(st.integers(0, len(held) - 1)))
    assert len(counts) == len(served)


def test_the_cards_that_were_measured_on_before_come_first():
    """The order of the others stays."""
    assert ("c", "a", "b", "d") == prefer(FOUR, {"c"})


@pytest.mark.parametrize(
    ("uuid", "word", "expected"),
    [
        ("GPU-12ab", "0", "12ab"),
        ("12AB", "0", "12ab"),
        ("MIG-12ab", "0", "12ab"),
        (None, "3", "number-3"),
    ],
)
def test_a_card_is_named_by_its_uuid_however_that_is_written(uuid, word, expected):
    """Two users whose CUDA_VISIBLE_DEVICES number the cards differently mean the same card."""
    assert expected == card_name({"uuid": uuid}, word)


@pytest.mark.parametrize("uuid", ["../../etc/passwd", "a/b", "x" * 500, "\x1b[2J", "."])
def test_a_name_can_not_leave_the_folder(uuid, folder):
    """What a stack says of its cards becomes the name of a file."""
    name = card_name({"uuid": uuid}, "0")
    with Leases("r", folder).lease(Request(1, (name,))):
        assert [f"{CARD}{name}.lock"] == [path.name for path in folder.glob(f"{CARD}*")]


@pytest.mark.parametrize(
    ("value", "count", "expected"),
    [
        ("2,3", 2, ["2", "3"]),
        (" GPU-a , GPU-b ", 2, ["GPU-a", "GPU-b"]),
        ("", 2, ["0", "1"]),
        ("5", 2, ["0", "1"]),
    ],
)
def test_the_callers_words_for_its_gpus_are_kept(value, count, expected):
    """Torch counts the cards that the variable leaves from 0; without it, or where it says less, they have numbers."""
    environ = {"CUDA_VISIBLE_DEVICES": value} if value else {}
    assert expected == visible_words(environ, ("CUDA_VISIBLE_DEVICES",), count)


def test_two_processes_have_different_cards(start, folder):
    """What one holds, another does not get; it gets another card."""
    _, first = hold(start, 2, FOUR)
    _, second = hold(start, 2, FOUR)
    assert ["a", "b"] == first
    assert ["c", "d"] == second


def test_a_lease_keeps_to_the_cards_that_are_allowed(start, folder):
    """A caller whose CUDA_VISIBLE_DEVICES leaves two cards never gets a third."""
    _, first = hold(start, 1, ("c", "d"))
    with Leases("r", folder).lease(Request(1, ("c", "d"))) as cards:
        assert (["c"], ("d",)) == (first, cards)


def test_a_holder_that_is_killed_frees_its_cards(start, folder):
    """SIGKILL leaves no lease behind, and who waits is told whom it waits for."""
    process, _ = hold(start, 4, FOUR)
    said = []

    def say(text):
        said.append(text)
        os.kill(process.pid, signal.SIGKILL)

    with Leases("mine", folder, say).lease(Request(4, FOUR)) as cards:
        assert FOUR == cards
    assert "waiting for 4 of 4 GPUs: run other-run of user " in said[0]
    assert f"(process {process.pid}, since " in said[0]


def test_one_who_waits_and_is_killed_keeps_nothing_back(start, folder):
    """A ticket is as mortal as a lease."""
    _, _ = hold(start, 1, ("a",))
    waiting = start(HOLD, "4", "a,b,c,d")
    deadline = time.monotonic() + 60
    while not list(folder.glob("ticket-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    waiting.kill()
    waiting.wait()
    with Leases("mine", folder).lease(Request(3, FOUR)) as cards:
        assert ("b", "c", "d") == cards
    assert [] == list(folder.glob("ticket-*"))


def test_a_request_for_all_is_served_in_a_stream_of_requests_for_one(start, folder):
    """Six processes that take one card after the other for ever do not starve who wants all four."""
    folder.mkdir()
    folder.chmod(0o777)
    stream = [start(STREAM) for _ in range(6)]
    deadline = time.monotonic() + 60
    while not list(folder.glob(f"{CARD}*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    with Leases("mine", folder, lambda text: None).lease(Request(4, FOUR)) as cards:
        assert FOUR == cards
        assert all(process.poll() is None for process in stream)
    (folder / "enough").touch()
    assert [0] * 6 == [process.wait() for process in stream]


def test_every_user_of_the_node_can_use_the_locks_whatever_the_umask(folder):
    """Folder, cards, guard and tickets are writable by all."""
    before = os.umask(0o077)
    try:
        with Leases("r", folder).lease(Request(1, ("a",))):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    finally:
        os.umask(before)
    assert {f"{CARD}a.lock": 0o666, "guard.lock": 0o666} == modes


def test_more_cards_than_are_allowed_is_an_error_and_no_wait(folder):
    """The error names the variable that decides."""
    with pytest.raises(
        LeaseError, match=r"2 GPUs are wanted and 1 may be used: look at CUDA_VISIBLE_DEVICES"
    ):
        Leases("r", folder).lease(Request(2, ("a", "a"))).__enter__()


def test_a_link_in_the_place_of_a_cards_file_is_not_followed(folder, tmp_path):
    """It is an error that says what to do, and somebody's file stays as it was."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder.mkdir()
    (folder / f"{CARD}a.lock").symlink_to(victim)
    with pytest.raises(LockError, match="can't be used"), Leases("r", folder).lease(Request(1, ("a",))):
        pass
    assert "precious" == victim.read_text()
    assert [] == list(folder.glob("ticket-*"))


@pytest.mark.parametrize(
    "note",
    [
        None,
        [],
        {},
        {"count": "4", "allowed": []},
        {"count": True, "allowed": []},
        {"count": -1, "allowed": []},
    ],
)
def test_a_ticket_that_is_none_keeps_nothing_back(note):
    """Anybody can write in the folder, and anything."""
    assert parse_ticket(1, note) is None


def test_a_ticket_says_what_is_wanted():
    """What is no name among the cards is left out, and a weight that is no number is none."""
    note = json.loads('{"count": 2, "allowed": ["a", 5], "weight": 30, "run": "r"}')

    assert Ticket(7, "r", Request(2, ("a",), 30)) == parse_ticket(7, note)
    assert Ticket(7, "r", Request(2, ("a",), 0)) == parse_ticket(7, note | {"weight": "30"})


def test_of_one_run_the_heaviest_request_comes_first_and_passes_nobody_elses():
    """A heavy group that asked last does not wait for light ones of its own run, unless another run asked between."""
    light, other, heavy, heavier = (
        Ticket(1, "r", Request(1, ("a",), 5)),
        Ticket(3, "another", Request(1, ("a",), 1)),
        Ticket(2, "r", Request(2, ("a", "b"), 30)),
        Ticket(4, "r", Request(2, ("a", "b"), 40)),
    )

    assert [heavy, light, other, heavier] == in_turn([light, other, heavy, heavier])


@given(st.lists(st.tuples(st.sampled_from("rst"), st.integers(0, 9)), max_size=12))
def test_each_run_keeps_the_places_that_it_drew(drawn):
    """Whatever the weights, the places of the queue belong to the same runs as without any, and nobody is lost."""
    tickets = [Ticket(number, run, Request(1, ("a",), weight)) for number, (run, weight) in enumerate(drawn)]
    served = in_turn(tickets[::-1])

    assert [run for run, _ in drawn] == [ticket.run for ticket in served]
    assert sorted(tickets, key=lambda t: t.number) == sorted(served, key=lambda t: t.number)
    for earlier, later in itertools.pairwise(served):
        assert earlier.run != later.run or earlier.request.weight >= later.request.weight


def test_who_left_no_name_is_waited_for_all_the_same(start, folder):
    """A holder whose note was overwritten in hostile characters is still the holder."""
    process, _ = hold(start, 1, ("a",))
    Path(folder, f"{CARD}a.lock").write_text("\x1b[2J{")
    said = []

    def say(text):
        said.append(text)
        process.kill()

    with Leases("mine", folder, say).lease(Request(1, ("a",))):
        pass
    assert ["waiting for 1 of 1 GPUs: somebody who left no name"] == said
