"""How points in time are taken: by the host's clock, or by events among the work that a GPU has queued.

An event says when the device had done what was queued before it, which is what a step takes. Where the host holds its
devices up they have always done all of it, and the host's clock says the same for a third of what an event costs.
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


EVENT_SEEN = 0.005
"""A step of so many seconds or more has an event behind it: that takes a host 12 us between two steps of a network
(`mnist_cnn`'s, on the host of an H200: docs/measurements/2026-11-30-h200), a four-hundredth of 5 ms."""

BEHIND = 0.25
"""Of a step, which devices may have left to do to be called held up by their host. At the end of 600 windows of steps
below 5 ms on GPUs it was 0.012 to 0.088 of one in 583, and 0.5 to 93 in 17, of CUDA graphs and of a batch of 512
(`docs/measurements/queued.py --below 5`). In 2 s, 400 such steps, the host's clock misses their mean by 0.06 % then."""


class Clock(Protocol):
    """How points in time are taken on a device."""

    @property
    def name(self) -> str:
        """``host`` or ``events``: what the points of the last window are of."""

    def suit(self, lag: float, step: float) -> None:
        """Get ready for a window of steps of so many seconds; its devices were behind their host by `lag`."""
        return

    def fits(self, lag: float) -> bool:
        """Return whether a window's points are right, at whose end devices were behind their host by `lag`."""
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
    """The host's clock, for CPUs and for a loader alone: work is done when the call returns."""

    name = "host"

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
        """Nothing is queued on a CPU."""

    def durations(self, marks: Sequence[float]) -> list[float]:
        """Return the seconds between consecutive marks."""
        return [after - before for before, after in zip(marks, marks[1:])]


class CudaClock(Clock):
    """CUDA events on the first device, since a host's clock would only see how fast work is queued.

    Events are made before the window, and the stream is looked up once: a host that holds its devices up is seen.
    """

    name = "events"

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._devices = list(devices)
        self._stream = torch.cuda.current_stream(self._devices[0])

    def marks(self, due: Due) -> Marks:
        """Make events, and return what records the next one; CUDA creates an event when it is first recorded."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(due) + 1)]
        for event in events:
            event.record(self._stream)
        record, stream, take, next_due = _record(), self._stream, events[::-1].pop, due.pop

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


class EitherClock(CudaClock):
    """Events, but the host's clock for short steps of a host that holds its devices up.

    Whether it does is judged when the first window opens, and held against what the devices have left to do when one
    closes: where the host had run ahead after all, that window is not right, and the next ones have events.
    """

    def __init__(self, devices: Sequence[torch.device]) -> None:
        super().__init__(devices)
        self._host = HostClock()
        self._by_host = False
        self._behind = 0.0

    @property
    def name(self) -> str:  # type: ignore[override]
        """``host`` or ``events``: what the points of the last window are of."""
        return self._host.name if self._by_host else super().name

    def suit(self, lag: float, step: float) -> None:
        """Choose the host's clock for short steps whose devices have done nearly all that was queued."""
        self._behind = BEHIND * step
        self._by_host = step < EVENT_SEEN and lag < self._behind

    def fits(self, lag: float) -> bool:
        """Return whether the points are right; where they are not, the next ones are events."""
        if self._by_host and lag >= self._behind:
            self._by_host = False
            return False
        return True

    def marks(self, due: Due) -> Marks:
        """Return what the chosen clock's marks are."""
        return self._host.marks(due) if self._by_host else super().marks(due)

    def durations(self, marks: Sequence[Any]) -> list[float]:
        """Return the seconds between consecutive points of either kind."""
        return self._host.durations(marks) if isinstance(marks[0], float) else super().durations(marks)


def _record() -> Callable[[torch.cuda.Event, Any], object]:
    """Return what records an event on a stream: where torch's own `Event.record` is Python's, what that calls."""
    own = torch.cuda.Event.record
    base = getattr(torch.cuda.Event.__base__, "record", None)
    return base if isinstance(own, types.FunctionType) and base is not None else own
