"""Where points in time come from: the host, and events in a GPU's queue."""

from __future__ import annotations

import functools
import itertools
import time
import types
from typing import ClassVar

import pytest
import torch

from perf.training.clocks import CudaClock, HostClock
from perf.training.held_up import BEHIND, CHECKS, EVENT_SEEN, EitherClock

TARGET = torch.zeros(2)


def test_the_hosts_clock_takes_time_where_it_is():
    """On a CPU a mark is the time itself, and a synchronize has nothing to wait for."""
    clock = HostClock()
    begin, step, marks = clock.marks([None, None])
    before = time.perf_counter()
    begin()
    step(None, TARGET)
    step(None, TARGET)
    clock.synchronize()

    assert sorted(marks) == marks
    assert 3 == len(marks)
    assert before <= marks[0] <= marks[-1] <= time.perf_counter()
    assert [2.0, 3.0] == clock.durations([1.0, 3.0, 6.0])


class EventBase:
    """What a CUDA event is in C++: its time is the number of recordings so far, a quarter of a second each."""

    recordings = 0
    at = 0.0

    def record(self, stream: object) -> None:
        assert stream == "stream of cuda:0"
        EventBase.recordings += 1
        self.at = 250.0 * EventBase.recordings


class Event(EventBase):
    """A CUDA event, which torch derives from that."""

    made: ClassVar[list[Event]] = []
    by_python = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        Event.made.append(self)

    def record(self, stream: object) -> None:
        Event.by_python += 1
        super().record(stream)

    def elapsed_time(self, other: Event) -> float:
        return other.at - self.at


@pytest.fixture
def cuda_clock(monkeypatch: pytest.MonkeyPatch) -> CudaClock:
    """A clock of two GPUs in a torch that has none."""
    Event.made.clear()
    Event.by_python = EventBase.recordings = 0
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    return CudaClock([torch.device("cuda", 0), torch.device("cuda", 1)])


@pytest.fixture
def either_clock(cuda_clock: CudaClock) -> EitherClock:
    """A clock of one such GPU, which takes the host's where that is as good."""
    return EitherClock(torch.device("cuda", 0))


def test_the_gpus_clock_waits_for_every_device(cuda_clock, monkeypatch):
    """DataParallel works on several devices; torch's own synchronize would wait for the current one only."""
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    cuda_clock.synchronize()

    assert [torch.device("cuda", 0), torch.device("cuda", 1)] == waited


def test_the_gpus_clock_reads_milliseconds_as_seconds(cuda_clock):
    """Marks are timing events on the first device's stream; their distance is in milliseconds."""
    begin, step, marks = cuda_clock.marks([None, None])
    begin()
    step(None, TARGET)
    step(None, TARGET)

    assert [0.25, 0.25] == cuda_clock.durations(marks)


def test_the_gpus_clock_makes_its_events_before_the_window(cuda_clock):
    """A mark records one that was recorded before, in their order, past the line of Python that torch's own takes."""
    begin, step, marks = cuda_clock.marks([None, None])
    assert (3, 3, 3) == (len(Event.made), EventBase.recordings, Event.by_python)

    begin()
    step(None, TARGET)
    assert (3, 5, 3) == (len(Event.made), EventBase.recordings, Event.by_python)
    assert [1000.0, 1250.0, 750.0] == [mark.at for mark in marks]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_step_does_what_is_due_in_it_behind_its_mark(cuda_clock, device):
    """The last of the list is the first step's; what it says is whether training stops, and nothing due goes on."""
    clock, told = (cuda_clock if device == "cuda" else HostClock()), []

    def stop(loss, target):
        told.append((loss, target, EventBase.recordings - 4 if device == "cuda" else len(marks) - 1))
        return True

    due = [stop, None, None]
    begin, step, marks = clock.marks(due)
    begin()

    assert [False, False, True] == [step(number, TARGET) for number in range(3)]
    assert ([], [(2, TARGET, 4 if device == "cuda" else 3)]) == (due, told)


SHORT = EVENT_SEEN / 2


@pytest.mark.parametrize(
    ("lag", "step", "name"),
    [
        (0.0, SHORT, "host"),
        (0.9 * BEHIND * SHORT, SHORT, "host"),
        (BEHIND * SHORT, SHORT, "events"),
        (50 * SHORT, SHORT, "events"),
        (0.0, EVENT_SEEN, "events"),
    ],
)
def test_short_steps_of_a_host_that_holds_its_devices_up_have_its_own_clock(either_clock, lag, step, name):
    """Where devices are behind, that tells how fast work is queued; behind long steps an event costs nothing seen."""
    assert "events" == either_clock.name(either_clock.marks([None])[2])
    either_clock.suit(lag, step)
    begin, note, marks = either_clock.marks([None])
    begin()
    note(None, TARGET)

    assert name == either_clock.name(marks)
    assert (float if name == "host" else Event) is type(marks[0])
    assert [pytest.approx(marks[1] - marks[0] if name == "host" else 0.25)] == either_clock.durations(marks)


def test_events_are_right_however_far_a_host_runs_ahead(either_clock, cuda_clock):
    """Of a clock that never chose, and of one that has no choice."""
    assert either_clock.fits(10.0, SHORT)
    assert cuda_clock.fits(10.0, SHORT)
    assert ("events", "host") == (cuda_clock.name([]), HostClock().name([]))


@pytest.mark.parametrize("steps", [1, 2, 3, 40, 100, 900, 5000])
def test_some_steps_by_the_hosts_clock_have_an_event_too(either_clock, steps):
    """Of the others at most 25, not at equal distances, made before the window; what was due in them is done."""
    either_clock.suit(0.0, SHORT)
    told: list[int] = []
    due = [lambda loss, target, step=step: bool(told.append(step)) for step in reversed(range(steps))]
    begin, note, _ = either_clock.marks(due)
    made = len(Event.made)
    begin()
    checked = []
    for step in range(steps):
        before = EventBase.recordings
        assert note(None, TARGET) is False
        checked += [step] * (EventBase.recordings - before)

    assert [*range(steps)] == told
    assert made == len(Event.made)
    assert min(steps, 1) <= len(checked) <= CHECKS
    if steps >= 900:
        assert len(checked) > 20
        assert len({after - before for before, after in itertools.pairwise(checked)}) == 4


def test_the_hosts_clock_waits_for_the_gpus_that_it_holds_up(monkeypatch):
    """A window's edges are where they are idle; on a CPU there is nothing to wait for."""
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    HostClock().synchronize()
    assert [] == waited
    HostClock([torch.device("cuda", 1)]).synchronize()
    assert [torch.device("cuda", 1)] == waited


class Alone:
    """An event whose base records nothing."""

    def __init__(self, enable_timing: bool) -> None:
        self.at: list[object] = []

    def record(self, stream: object) -> None:
        self.at.append(stream)


class Recorder:
    """A method that is none of Python's functions, as those of C++ are."""

    def __get__(self, event, kind=None):
        return self if event is None else functools.partial(self, event)

    def __call__(self, event, stream):
        event.at.append(stream)


class Refusing(Alone):
    """What another event may have for a base: its `record` is a method of its own."""

    def record(self, stream: object) -> None:
        raise AssertionError("a base's method was taken, though the event's own is not Python's")


class Native(Refusing):
    """An event that is C++'s own."""

    record = Recorder()


@pytest.mark.parametrize("event", [Alone, Native])
def test_the_gpus_clock_does_with_other_events(cuda_clock, monkeypatch, event):
    """Should torch one day have events without a base that records, or without Python, their own method is taken."""
    monkeypatch.setattr(torch.cuda, "Event", event)
    begin, _, marks = cuda_clock.marks([None])
    begin()

    assert [2, 1] == [len(mark.at) for mark in marks]


@pytest.mark.skipif(not torch.backends.cuda.is_built(), reason="this torch was built without CUDA")
def test_torchs_own_events_have_a_base_that_records():
    """What the clock calls is the method of C++ that torch's own `record` calls."""
    base = torch.cuda.Event.__base__

    assert isinstance(torch.cuda.Event.record, types.FunctionType)
    assert "record" in vars(base)
    assert not isinstance(vars(base)["record"], types.FunctionType)
