"""Blocks of steps in pairs, with and without something, and the interval of what a pair differs by."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Callable

import torch

from perf.training.clocks import Clock, CudaClock, HostClock
from perf.training.held_up import EitherClock
from perf.training.loop import train
from perf.training.meter import Meter
from perf.training.ring import RingLoader
from perf.training.watched import Watched

CONFIDENCE = 0.95

WARM_UP, LEAST_SECONDS = 32, 0.5
"""Steps of a launch's warm-up on a GPU (`perf.profiles`), and how long the window behind it lasts at least that tells
whether its clock was the right one."""

FEWEST_PAIRS = 6
"""The smallest and the largest of 6 values miss the median with probability 2 / 2^6 = 3 %, of 5 with 6 %."""


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return an exact interval for the median: the narrowest pair of order statistics that covers `confidence`.

    Distribution-free: the number of values below the median is binomial(n, 1/2).

    Raises
    ------
    ValueError
        If there are too few values for any pair to cover that much: fewer than 6 for 0.95.
    """
    ordered, n = sorted(values), len(values)
    if 2 / 2**n > 1 - confidence:
        raise ValueError(f"{n} values can't give an interval that covers {confidence}; take more")
    k, below = 0, 1 + n
    while k + 1 < n / 2 and 2 * below / 2**n <= 1 - confidence:
        k += 1
        below += math.comb(n, k + 1)
    return ordered[k], ordered[n - 1 - k]


def bare(
    model: torch.nn.Module,
    device: torch.device,
    train_loader: Iterable[Any],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Train as `perf.training.loop.train` does, without a meter: what the instrumented loop is held against."""
    model.train()
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = loss_function(output, target)
        loss.backward()
        optimizer.step()


class Block:
    """Batches of a ring, as an iterable: one to begin with, and those of a block.

    Parameters
    ----------
    ring
        The batches.
    steps
        Of the block.
    edge
        Called before the block's first batch and behind its last step. A loop's own beginning and end are no part of a
        block: in a window they come once an epoch.
    """

    def __init__(self, ring: RingLoader, steps: int, edge: Callable[[], object] = lambda: None) -> None:
        self._ring = ring
        self._steps = steps
        self._edge = edge

    def __iter__(self) -> Any:
        """Yield the batches."""
        batches = self._ring.batches
        yield batches[0]
        self._edge()
        for step in range(1, self._steps + 1):
            yield batches[step % len(batches)]
        self._edge()


class Nothing:
    """A network, a loss function, a loss and an optimizer that do nothing."""

    def __init__(self, loss: torch.Tensor) -> None:
        self._loss = loss

    @property
    def data(self) -> torch.Tensor:
        """What a loss gives for the same question: a tensor of its own each time."""
        return self._loss.data

    def train(self) -> None:
        """Nothing to prepare."""

    def zero_grad(self) -> None:
        """Nothing to clear."""

    def backward(self) -> None:
        """Nothing to compute."""

    def step(self) -> None:
        """Nothing to move."""

    def __call__(self, *ignored: Any) -> Nothing:
        """Return itself, as an output and as a loss."""
        return self


@dataclass(frozen=True)
class Noted:
    """Seconds of notes, each timed by itself between steps of a network.

    Attributes
    ----------
    steps, looks
        A step's, where it looks at nothing, and where it looks at loss and batch. Either is empty where a window has
        none such.
    waits
        What noting the wait for a batch takes: beside the others on a loader that is waited for, on no other.
    """

    steps: list[float]
    looks: list[float]
    waits: list[float]


def launch_clock(ring: RingLoader, device: torch.device, trains: tuple[Any, Any, Any]) -> Clock:
    """Return the kind of clock that a launch's window has: chosen behind a warm-up, and held to a window.

    Parameters
    ----------
    ring, device, trains
        As for `Pairs`. On a GPU a hundred steps are trained at least, as many as last half a second.
    """
    if device.type == "cpu":
        return HostClock()
    meter = Meter(
        EitherClock(device),
        warmup_steps=WARM_UP,
        rewarm_steps=0,
        timed_steps=2 * WARM_UP,
        min_seconds=LEAST_SECONDS,
        stop_when_timed=True,
    )
    model, loss_function, optimizer = trains
    while not meter.finished:
        batches = Watched(Block(ring, 100 * WARM_UP), meter, waits=False)
        train(model, device, batches, loss_function, optimizer, meter)
    # One of which nothing changes from block to block.
    return HostClock([device]) if meter.clock == "host" else CudaClock([device])


class Pairs:
    """Runs blocks of both loops in turn.

    Parameters
    ----------
    ring
        The batches.
    device
        Where they lie.
    steps
        Of a block.
    window
        Steps of the windows that the suite takes of this network: a meter looks at losses the less often, the more.
    trains
        Model, loss function and optimizer.
    clock
        What takes the time of steps.
    """

    def __init__(
        self,
        ring: RingLoader,
        device: torch.device,
        steps: int,
        window: int,
        trains: tuple[Any, Any, Any],
        clock: Clock,
    ) -> None:
        self._batches: Any = Block(ring, steps, self._edge)
        self._edges: list[float] = []
        self._device = device
        self._window = max(window, steps + 2)
        self._trains = trains
        self._clock = clock
        self.closing: list[float] = []

    def take(self, pairs: int) -> list[tuple[float, float]]:
        """Return the seconds of each pair of blocks: bare, instrumented. A window's two ends lie outside them."""
        for side in ("bare", "instrumented", "bare", "instrumented"):
            self._block(side)
        self.closing.clear()
        found = []
        for pair in range(pairs):
            order = ("bare", "instrumented") if pair % 2 == 0 else ("instrumented", "bare")
            seconds = {side: self._block(side) for side in order}
            found.append((seconds["bare"], seconds["instrumented"]))
        return found

    def noted(self, blocks: int) -> Noted:
        """Return what notes take between steps of the network.

        Over a network that does nothing they take a part of that, since all of it lies in the core's caches there.
        """
        found = Noted([], [], [])
        now = time.perf_counter
        model, loss_function, optimizer = self._trains
        for _ in range(blocks):
            meter = self._metered()
            batches = iter(Watched(self._batches, meter))
            model.train()
            while True:
                asked = now()
                batch = next(batches, None)
                given = now()
                if batch is None:
                    break
                data, target = batch[0].to(self._device), batch[1].to(self._device)
                optimizer.zero_grad()
                loss = loss_function(model(data), target)
                loss.backward()
                optimizer.step()
                losses = len(meter.losses)
                ended = now()
                meter.step(loss, target)
                noted = now()
                # A clock's own call is in each piece, as `empty` is.
                empty = now() - noted
                (found.steps if len(meter.losses) == losses else found.looks).append(noted - ended - empty)
                found.waits.append(given - asked - meter.waits[-1] - empty)
            self._clock.synchronize()
        return found

    def _edge(self) -> None:
        """Take the time at which a block begins or ends, on a device that is idle."""
        self._clock.synchronize()
        self._edges.append(time.perf_counter())

    def _metered(self) -> Meter:
        """Return a meter with an open window, and a device that is idle."""
        meter = Meter(
            self._clock,
            warmup_steps=0,
            rewarm_steps=0,
            timed_steps=self._window,
            min_seconds=0.0,
            stop_when_timed=False,
            edges=False,
        )
        meter.open_window()
        self._clock.synchronize()
        return meter

    def _block(self, side: str) -> float:
        model, loss_function, optimizer = self._trains
        meter = self._metered()
        self._edges.clear()
        if side == "bare":
            bare(model, self._device, self._batches, loss_function, optimizer)
        else:
            batches = Watched(self._batches, meter, waits=False)
            train(model, self._device, batches, loss_function, optimizer, meter)
            before = time.perf_counter()
            meter.last_step()
            self.closing.append(time.perf_counter() - before)
        began, ended = self._edges
        return ended - began
