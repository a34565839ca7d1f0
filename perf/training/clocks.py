"""How points in time are taken: by the host's clock, or by events among the work that a GPU has queued.

An event says when the device had done what was queued before it, which is what a step takes. `perf.training.held_up`
has a clock that does without where a host holds its device up.
"""

from __future__ import annotations

import time
import types
from collections.abc import Sequence
from typing import Any, Callable, Optional, Protocol

import torch

Action = Callable[[Optional[torch.Tensor], torch.Tensor], bool]
"""What notes a step, given its loss and its targets, and says whether training should stop."""

Due = list[Optional[Action]]
"""What is to be done in each step of a stretch besides taking its time, the first step last."""

Marks = tuple[Callable[[], object], Action, Sequence[Any]]
"""What takes the first point in time, what takes one behind a step and does what is due in it, and where the points
stand, the first one first."""


class Clock(Protocol):
    """How points in time are taken on a device."""

    def name(self, marks: Sequence[Any]) -> str:
        """Return what these points are of: ``host`` or ``events``."""

    def suit(self, lag: float, step: float) -> None:
        """Get ready for a window of steps of so many seconds; its devices were behind their host by `lag`."""
        return

    def fits(self, lag: float, step: float) -> bool:
        """Return whether a stretch's points are right: of steps so long, its devices behind by `lag` at its end."""
        return True

    def marks(self, due: Due) -> Marks:
        """Get ready for a point in time and one behind each step, outside the window; each lies behind the work queued.

        What takes one is called once a step. Behind the step of a network, whose code and data fill a core's caches, a
        line takes several times as long as in a loop of its own, and longer than plain lines of Python do calls of what
        Python itself seldom uses (`map`, `iter`). So it is one function, of few and plain lines, that looks nothing up
        in an object.
        """

    def synchronize(self) -> None:
        """Wait until every device in use is idle."""

    def durations(self, marks: Sequence[Any]) -> list[float]:
        """Return the seconds between consecutive marks. Called when the devices are idle."""


class HostClock(Clock):
    """The host's clock, for CPUs and for a loader alone: work is done when the call returns.

    Parameters
    ----------
    devices
        GPUs that it holds up, to be waited for all the same.
    """

    def __init__(self, devices: Sequence[torch.device] = ()) -> None:
        self._devices = list(devices)

    def name(self, marks: Sequence[Any]) -> str:
        """Return ``host``."""
        return "host"

    def marks(self, due: Due) -> Marks:
        """Return what notes the time, and where."""
        points: list[float] = []
        note, now, next_due = points.append, time.perf_counter, due.pop

        def step(loss: Optional[torch.Tensor], target: torch.Tensor) -> bool:
            note(now())
            action = next_due()
            return action is not None and action(loss, target)

        return lambda: note(now()), step, points

    def synchronize(self) -> None:
        """Wait for the GPUs, if any: nothing is queued on a CPU."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def durations(self, marks: Sequence[float]) -> list[float]:
        """Return the seconds between consecutive marks."""
        return [after - before for before, after in zip(marks, marks[1:])]


class CudaClock(Clock):
    """CUDA events on the first device, since a host's clock would only see how fast work is queued.

    Events are made before the window, and the stream is looked up once: a host that holds its devices up is seen.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._devices = list(devices)
        self._stream = torch.cuda.current_stream(self._devices[0])

    def name(self, marks: Sequence[Any]) -> str:
        """Return ``events``."""
        return "events"

    def marks(self, due: Due) -> Marks:
        """Make events, and return what records the next one; CUDA creates an event when it is first recorded."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(due) + 1)]
        for event in events:
            event.record(self._stream)
        record, stream, take, next_due = native_record(), self._stream, events[::-1].pop, due.pop

        def step(loss: Optional[torch.Tensor], target: torch.Tensor) -> bool:
            record(take(), stream)
            action = next_due()
            return action is not None and action(loss, target)

        return lambda: record(take(), stream), step, events

    def synchronize(self) -> None:
        """Wait for every device: `torch.cuda.synchronize` without argument waits for the current one only."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def durations(self, marks: Sequence[torch.cuda.Event]) -> list[float]:
        """Return the seconds between consecutive events."""
        return [before.elapsed_time(after) / 1000.0 for before, after in zip(marks, marks[1:])]


def native_record() -> Callable[[torch.cuda.Event, Any], object]:
    """Return what records an event on a stream: where torch's own `Event.record` is Python's, what that calls."""
    own = torch.cuda.Event.record
    base = getattr(torch.cuda.Event.__base__, "record", None)
    return base if isinstance(own, types.FunctionType) and base is not None else own
