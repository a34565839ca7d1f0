"""How points in time are taken: by the host's clock, or by events among the work that a GPU has queued."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """How points in time are taken on a device."""

    def prepare(self, marks: int) -> None:
        """Get ready for that many marks, outside the window."""

    def mark(self) -> Any:
        """Take a point in time at the end of the work queued so far."""

    def synchronize(self) -> None:
        """Wait until every device in use is idle."""

    def durations(self, marks: Sequence[Any]) -> list[float]:
        """Return the seconds between consecutive marks. Called when the devices are idle."""


class HostClock:
    """The host's clock, for CPUs and for a loader alone: work is done when the call returns."""

    def prepare(self, marks: int) -> None:
        """The host's clock needs no preparation."""

    def mark(self) -> float:
        """Return the time now."""
        return time.perf_counter()

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
        self._ready: list[torch.cuda.Event] = []

    def prepare(self, marks: int) -> None:
        """Make events; CUDA creates one when it is first recorded."""
        self._ready = [torch.cuda.Event(enable_timing=True) for _ in range(marks)]
        for event in self._ready:
            event.record(self._stream)

    def mark(self) -> torch.cuda.Event:
        """Record an event behind the work queued so far."""
        event = self._ready.pop() if self._ready else torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def synchronize(self) -> None:
        """Wait for every device: `torch.cuda.synchronize` without argument waits for the current one only."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def durations(self, marks: Sequence[torch.cuda.Event]) -> list[float]:
        """Return the seconds between consecutive events."""
        return [before.elapsed_time(after) / 1000.0 for before, after in zip(marks, marks[1:])]
