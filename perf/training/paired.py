"""Blocks of steps in pairs, with and without something, and the interval of what a pair differs by."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable

import torch

from perf.training.clocks import Clock, CudaClock, HostClock
from perf.training.loop import train
from perf.training.meter import Meter
from perf.training.ring import RingLoader
from perf.training.watched import Watched

CONFIDENCE = 0.95

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
    """A number of batches of a ring, as an iterable."""

    def __init__(self, ring: RingLoader, steps: int) -> None:
        self._ring = ring
        self._steps = steps

    def __iter__(self) -> Any:
        """Yield the block's batches."""
        batches = self._ring.batches
        return (batches[step % len(batches)] for step in range(self._steps))


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
    model, loss_function, optimizer
        What trains.
    """

    def __init__(
        self,
        ring: RingLoader,
        device: torch.device,
        steps: int,
        model: Any,
        loss_function: Any,
        optimizer: Any,
    ) -> None:
        self._batches: Any = Block(ring, steps)
        self._device = device
        self._steps = steps
        self._trains = (model, loss_function, optimizer)
        self._clock: Clock = CudaClock([device]) if device.type == "cuda" else HostClock()
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

    def _block(self, side: str) -> float:
        model, loss_function, optimizer = self._trains
        meter = Meter(
            self._clock,
            warmup_steps=0,
            rewarm_steps=0,
            timed_steps=self._steps + 1,
            min_seconds=0.0,
            stop_when_timed=False,
        )
        meter.open_window()
        self._clock.synchronize()
        before = time.perf_counter()
        if side == "bare":
            bare(model, self._device, self._batches, loss_function, optimizer)
        else:
            train(model, self._device, Watched(self._batches, meter), loss_function, optimizer, meter)
        self._clock.synchronize()
        ended = time.perf_counter()
        meter.last_step()
        if side == "instrumented":
            self.closing.append(time.perf_counter() - ended)
        return ended - before
