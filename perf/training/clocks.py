"""How points in time are taken: by the host's clock, or by events among the work that a GPU has queued."""

from __future__ import annotations

import time
import types
from collections.abc import Sequence
from typing import Any, Callable, Protocol

import torch

Marks = tuple[Callable[[], object], Sequence[Any]]
"""What takes the next point in time, and where those that were taken stand, the first one first."""


class Clock(Protocol):
    """How points in time are taken on a device."""

    def marks(self, count: int) -> Marks:
        """Get ready for so many points in time, outside the window; each will lie behind the work queued so far.

        What takes them is called once a step. Behind the step of a network, whose code and data fill a core's caches, a
        line takes several times as long as in a loop of its own, and longer than plain lines of Python do calls of what
        Python itself seldom uses (`map`, `iter`): these are plain.
        """

    def synchronize(self) -> None:
        """Wait until every device in use is idle."""

    def durations(self, marks: Sequence[Any]) -> list[float]:
        """Return the seconds between consecutive marks. Called when the devices are idle."""


class HostClock:
    """The host's clock, for CPUs and for a loader alone: work is done when the call returns."""

    def marks(self, count: int) -> Marks:
        """Return what notes the time, and where."""
        points: list[float] = []
        note, now = points.append, time.perf_counter

        def mark() -> None:
            note(now())

        return mark, points

    def synchronize(self) -> None:
        """Nothing is queued on a CPU."""

    def durations(self, marks: Sequence[float]) -> list[float]:
        """Return the seconds between consecutive marks."""
        return [after - before for before, after in zip(marks, marks[1:])]


class CudaClock:
    """CUDA events on the first device, since a host's clock would only see how fast work is queued.

    A network as small as `mnist_cnn` is bound by the host, so each microsecond here is seen: events are made before the
    window, and the stream is looked up once.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._devices = list(devices)
        self._stream = torch.cuda.current_stream(self._devices[0])

    def marks(self, count: int) -> Marks:
        """Make events, and return what records the next one; CUDA creates an event when it is first recorded."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count)]
        for event in events:
            event.record(self._stream)
        record, stream, take = _record(), self._stream, events[::-1].pop

        def mark() -> None:
            record(take(), stream)

        return mark, events

    def synchronize(self) -> None:
        """Wait for every device: `torch.cuda.synchronize` without argument waits for the current one only."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def durations(self, marks: Sequence[torch.cuda.Event]) -> list[float]:
        """Return the seconds between consecutive events."""
        return [before.elapsed_time(after) / 1000.0 for before, after in zip(marks, marks[1:])]


def _record() -> Callable[[torch.cuda.Event, Any], object]:
    """Return what records an event on a stream: where torch's own `Event.record` is Python's, what that calls."""
    own = torch.cuda.Event.record
    base = getattr(torch.cuda.Event.__base__, "record", None)
    return base if isinstance(own, types.FunctionType) and base is not None else own
