from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from perf import contract
from perf.records import Event, append_line
from perf.report.tail import EventTail, follow

# A line feed, what splitlines() takes for one, characters of two to four bytes, and JSON's own.
TEXT = st.text(st.sampled_from('a"{}\\\n\r\x1c\u2028ß日😀'))
EVENTS = st.builds(
    Event,
    kind=st.sampled_from(["planned", "start", "done", "failed", "extend", "note"]),
    time=st.floats(0, 2e9),
    member=TEXT,
    number=st.integers(0, 50),
    text=TEXT,
)


def content(events):
    """Return a file of events."""
    return "".join(contract.encode(event) + "\n" for event in events).encode()


class Drawn:
    """Keeps what it is told to draw; `on_tick` is called at every tick."""

    def __init__(self, on_tick=lambda: None):
        self.events = []
        self.ticks = 0
        self.on_tick = on_tick

    def on_event(self, event):
        self.events.append(event)

    def tick(self):
        self.ticks += 1
        self.on_tick()


@settings(max_examples=60)
@given(st.lists(EVENTS, max_size=6), st.data())
def test_any_split_of_the_bytes_gives_the_same_events(tmp_path_factory, events, data):
    """However the file grows, also inside a line or a character, each event comes once, whole and in order."""
    whole = content(events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    path = tmp_path_factory.mktemp("tail") / "events.jsonl"
    tail = EventTail(path)
    seen = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with path.open("ab") as file:
            file.write(whole[start:end])
        seen += tail.read()
    assert events == seen
    assert [] == tail.read()


def test_a_half_line_waits_for_its_end(tmp_path):
    """A line without a line feed is no event yet."""
    path, event = tmp_path / "events.jsonl", Event(kind="note", time=1.0, text="whole")
    path.write_bytes(content([event])[:-1])
    tail = EventTail(path)
    assert [] == tail.read()
    with path.open("ab") as file:
        file.write(b"\n")
    assert [event] == tail.read()


def test_a_file_that_does_not_exist_yet_has_no_events(tmp_path):
    """The controller starts looking before a worker has written."""
    tail = EventTail(tmp_path / "events.jsonl")
    assert [] == tail.read()
    append_line(tail.path, contract.encode(Event(kind="note", time=1.0, text="first")))
    assert ["first"] == [event.text for event in tail.read()]


def test_a_broken_line_becomes_a_note_with_its_place(tmp_path):
    """Text that is no event, bytes that are no UTF-8 and absurd nesting are noted by line; the others are read."""
    path = tmp_path / "events.jsonl"
    good = content([Event(kind="start", time=1.0)])
    path.write_bytes(good + b'{"kind":"done"\n\xff\xfe\n\n' + b"[" * 200_000 + b"\n" + good)
    events = EventTail(path).read()
    assert ["start", "note", "note", "note", "start"] == [event.kind for event in events]
    assert [f"{path}:2", f"{path}:3", f"{path}:5"] == [
        next(line for line in (f"{path}:{number}" for number in range(1, 9)) if f"{line}:" in event.text)
        for event in events[1:4]
    ]


def test_a_writer_that_takes_a_half_line_back_does_no_harm(tmp_path):
    """After a full disk a writer cuts the file back to before its line; nothing is lost, nothing is seen twice."""
    path = tmp_path / "events.jsonl"
    first, second = (Event(kind="note", time=1.0, text=text) for text in ("first", "second"))
    # Killed inside its line, then a writer that closes that line, writes a part of its own, and takes both back.
    path.write_bytes(content([first]) + b'{"kind":')
    tail = EventTail(path)
    assert [first] == tail.read()
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'\n{"kin')
    assert ["note"] == [event.kind for event in tail.read()]
    with path.open("r+b") as file:
        file.truncate(size)
    assert [] == tail.read()
    append_line(path, contract.encode(second))
    assert [second] == tail.read()


def test_following_draws_what_was_written_before_the_stop(tmp_path):
    """Events that are written before `stop` is set are drawn, also if the thread was asleep then."""
    path, stop = tmp_path / "events.jsonl", threading.Event()
    drawn = Drawn()
    thread = threading.Thread(target=follow, args=(path, drawn, stop, 0.01))
    thread.start()
    events = [Event(kind="start", time=float(number), number=number) for number in range(5)]
    for event in events:
        append_line(path, contract.encode(event))
    stop.set()
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert events == drawn.events
    assert drawn.ticks >= 1


def test_following_outlives_a_file_that_cannot_be_read(tmp_path):
    """A path that is a folder is complained about once; the thread goes on looking until it is stopped."""
    path, stop = tmp_path / "events.jsonl", threading.Event()
    path.mkdir()
    drawn = Drawn()
    drawn.on_tick = lambda: stop.set() if drawn.ticks == 3 else None
    follow(path, drawn, stop, interval=0.0)
    assert ["note"] == [event.kind for event in drawn.events]
    assert str(path) in drawn.events[0].text
    assert 4 == drawn.ticks
