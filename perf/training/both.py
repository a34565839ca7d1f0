"""What the host's clock says of steps, and what a GPU's events say of the same ones.

`perf.training.held_up.EitherClock` takes the host's where a host holds its device up; this shows that nothing but the
cost of events is lost by it.
"""

from __future__ import annotations

import statistics
from typing import Any, cast

import torch

from perf.training.clocks import Clock, Due, HostClock
from perf.training.loop import train
from perf.training.meter import Meter
from perf.training.paired import Block
from perf.training.ring import RingLoader


class Both:
    """What a loop calls behind each step: takes its time by both clocks, and looks at nothing.

    Parameters
    ----------
    events
        The clock of the device.
    steps
        How many there will be.
    """

    def __init__(self, events: Clock, steps: int) -> None:
        idle: Due = [None] * steps
        self._clocks = (HostClock(), events)
        self._begin, self._note, self._points = zip(*(clock.marks(list(idle)) for clock in self._clocks))

    def begin(self) -> None:
        """Take the point in time before the first step."""
        for begin in self._begin:
            begin()

    def step(self, loss: torch.Tensor, target: torch.Tensor) -> bool:
        """Take one behind a step, by the host's clock first: it does not wait for the event's."""
        for note in self._note:
            note(loss, target)
        return False

    def medians(self) -> tuple[float, float]:
        """Return the median step by the host's clock and by events, in seconds; the device must be idle."""
        host, events = (
            statistics.median(clock.durations(points)) for clock, points in zip(self._clocks, self._points)
        )
        return host, events


def both_clocks(
    ring: RingLoader,
    events: Clock,
    device: torch.device,
    trains: tuple[Any, Any, Any],
    windows: int,
    steps: int,
) -> list[tuple[float, float]]:
    """Return each window's median step by the host's clock and by events, in seconds.

    Parameters
    ----------
    ring, device, trains
        As for `perf.training.paired.Pairs`.
    events
        The clock of the device.
    windows, steps
        How many windows, of how many steps.
    """
    model, loss_function, optimizer = trains
    found = []
    for _ in range(windows):
        both = Both(events, steps)
        events.synchronize()
        both.begin()
        train(model, device, Block(ring, steps - 1), loss_function, optimizer, cast(Meter, both))
        events.synchronize()
        found.append(both.medians())
    return found
