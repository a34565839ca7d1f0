"""Where points in time come from: the host, and events in a GPU's queue."""

from __future__ import annotations

import time
from typing import ClassVar

import pytest
import torch

from perf.training.clocks import CudaClock, HostClock


def test_the_hosts_clock_takes_time_where_it_is():
    """On a CPU a mark is the time itself, and a synchronize has nothing to wait for."""
    clock = HostClock()
    marks = [clock.mark() for _ in range(3)]
    clock.synchronize()

    assert sorted(marks) == marks
    assert marks[-1] <= time.perf_counter()
    assert [2.0, 3.0] == clock.durations([1.0, 3.0, 6.0])


class Event:
    """A CUDA event whose time is the number of recordings so far, a quarter of a second each."""

    made: ClassVar[list[Event]] = []
    recordings = 0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at = 0.0
        Event.made.append(self)

    def record(self, stream: object) -> None:
        assert stream == "stream of cuda:0"
        Event.recordings += 1
        self.at = 250.0 * Event.recordings

    def elapsed_time(self, other: Event) -> float:
        return other.at - self.at


@pytest.fixture
def cuda_clock(monkeypatch: pytest.MonkeyPatch) -> CudaClock:
    """A clock of two GPUs in a torch that has none."""
    Event.made.clear()
    Event.recordings = 0
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    return CudaClock([torch.device("cuda", 0), torch.device("cuda", 1)])


def test_the_gpus_clock_waits_for_every_device(cuda_clock, monkeypatch):
    """DataParallel works on several devices; torch's own synchronize would wait for the current one only."""
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    cuda_clock.synchronize()

    assert [torch.device("cuda", 0), torch.device("cuda", 1)] == waited


def test_the_gpus_clock_reads_milliseconds_as_seconds(cuda_clock):
    """Marks are timing events on the first device's stream; their distance is in milliseconds."""
    assert [0.25, 0.25] == cuda_clock.durations([cuda_clock.mark() for _ in range(3)])


def test_the_gpus_clock_makes_its_events_before_the_window(cuda_clock):
    """What was prepared is recorded again, not made anew; beyond that a mark makes its own event."""
    cuda_clock.prepare(3)
    assert (3, 3) == (len(Event.made), Event.recordings)

    marks = [cuda_clock.mark() for _ in range(3)]
    assert (3, 3) == (len(Event.made), len({id(mark) for mark in marks}))
    marks.append(cuda_clock.mark())
    assert 4 == len(Event.made)
    assert [0.25, 0.25, 0.25] == cuda_clock.durations(marks)
