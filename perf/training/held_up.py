"""A clock for devices that may be held up by their host.

A device that waits for its host has always done all that was queued, and the host's clock says of a step what an event
does, for an eighth of what that costs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from perf.training.clocks import Action, CudaClock, Due, HostClock, Marks, native_record

EVENT_SEEN = 0.005
"""A step of so many seconds or more has an event behind it: that takes a host 12 us between two steps of a network
(`mnist_cnn`'s, on the host of an H200: docs/measurements/2026-11-30-h200), a four-hundredth of 5 ms."""

BEHIND = 0.1
"""Of a step, which a device may have left to do at a step's end to be called held up by its host. At the end of 600
windows of steps below 5 ms on GPUs it was 0.012 to 0.088 of one in 583, and 0.5 to 93 in 17, of CUDA graphs and of a
batch of 512 (`docs/measurements/queued.py --below 5`)."""

LEAST_STRETCH = 200
"""Steps of an epoch, and so of nearly every stretch of a window, below which the host's clock would not be trusted: a
stretch of n steps may end with `BEHIND` of one that it has not seen, 0.05 % of so many."""

CHECKS = 25
"""In a window, of how far the device is behind inside of it: each is an event in one of its steps. In one of 36, as
windows of `mnist_cnn` have for each, that is a third of a microsecond a step."""

FEW = 0.05
"""Of the checks, which may find the device further behind than `BEHIND`: one of 25, and one of fewer where there are
`CHECKS_TO_SPARE`. What one finds is what a window's end does, which none of the 583 did. A host that is faster than its
device in some steps and slower in others fails them, but where it is within a tenth of the device and its own steps
differ by a tenth: there medians by the two clocks differ by up to 3 %, since a queue evens the device's out (made up,
tests/perf/training/test_held_up.py)."""

CHECKS_TO_SPARE = 5
"""Checks of a stretch of which one may be late: of fewer it would be most of what is known."""

DRIFT = 300e-6
"""By which a device's clock may be the faster or the slower one. On two H200s medians by the two were 0.99996 (0.99983
to 1.00026) and 1.00004 of each other (docs/measurements/2026-11-30-h200-x4); what is more was not the clock's."""


class EitherClock(CudaClock):
    """Events, but the host's clock for short steps of a host that holds its device up.

    Whether it does is judged when the first window opens. It is held against what the device has left to do when one
    closes, and against how far it was behind in some steps of it. Where the host had run ahead after all that stretch
    is not right, and the next ones have events.

    Parameters
    ----------
    device
        The only one in use.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__([device])
        self._host = HostClock()
        self._by_host = False
        self._points: Sequence[float] = ()
        self._begin = self._end = torch.cuda.Event(enable_timing=True)
        self._checks: list[tuple[int, torch.cuda.Event]] = []
        self._checked_at: list[float] = []

    def name(self, marks: Sequence[Any]) -> str:
        """Return ``host`` or ``events``."""
        return "host" if isinstance(marks[0], float) else "events"

    def suit(self, lag: float, step: float) -> None:
        """Choose the host's clock for short steps whose device has done nearly all that was queued."""
        self._by_host = step < EVENT_SEEN and lag < BEHIND * step

    def fits(self, lag: float, step: float) -> bool:
        """Return whether the points are right; where they are not, the next ones are events."""
        if self._by_host:
            self._by_host = lag < BEHIND * step and self._kept_up(BEHIND * step)
            return self._by_host
        return True

    def marks(self, due: Due) -> Marks:
        """Return what the chosen clock's marks are; beside the host's, the device has some events."""
        if not self._by_host:
            return super().marks(due)
        self._check(due)
        note, step, self._points = self._host.marks(due)
        record, event, stream = native_record(), self._begin, self._stream

        def begin() -> None:
            note()
            record(event, stream)

        return begin, step, self._points

    def durations(self, marks: Sequence[Any]) -> list[float]:
        """Return the seconds between consecutive points of either kind."""
        return self._host.durations(marks) if isinstance(marks[0], float) else super().durations(marks)

    def _check(self, due: Due) -> None:
        """Let some steps have an event, not at equal distances: what is uneven may have a period."""
        every = max(1, len(due) // CHECKS)
        step = every // 2
        self._checks, self._checked_at = [], []
        while step < len(due):
            self._checks.append((step, torch.cuda.Event(enable_timing=True)))
            step += every + len(self._checks) % 4
        record, stream = native_record(), self._stream
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for event in (self._begin, self._end, *(event for _, event in self._checks)):
            # CUDA creates it now.
            event.record(stream)
        for step, event in self._checks:
            place = len(due) - 1 - step
            due[place] = _first(record, event, stream, self._checked_at.append, due[place])

    def _kept_up(self, allowed: float) -> bool:
        """Return whether the device was behind its host by less, in seconds, in all but few of the steps checked.

        Behind is what an event took longer to come than the host to ask for it, both since the window began. The two
        tell time a little differently, which adds up: by how much both have told of the whole window.
        """
        ended = time.perf_counter()
        self._end.record(self._stream)
        self.synchronize()
        began, whole = self._points[0], self._begin.elapsed_time(self._end) / 1000.0
        if abs(whole - (ended - began)) > allowed + DRIFT * whole:
            # Whoever took a time was held up just then, so that none of these is known.
            return False
        pace = (ended - began) / whole if whole > 0 else 1.0
        found = [
            pace * self._begin.elapsed_time(event) / 1000.0 - (asked - began)
            for (_, event), asked in zip(self._checks, self._checked_at)
        ]
        spare = max(1, int(FEW * len(found))) if len(found) >= CHECKS_TO_SPARE else 0
        return len([behind for behind in found if behind >= allowed]) <= spare


def _first(
    record: Callable[..., object],
    event: Any,
    stream: Any,
    note: Callable[[float], object],
    action: Optional[Action],
) -> Action:
    """Return an action that records an event, notes when, and then does what was due."""
    now = time.perf_counter

    def both(loss: Optional[torch.Tensor], target: torch.Tensor) -> bool:
        note(now())
        record(event, stream)
        return action is not None and action(loss, target)

    return both
