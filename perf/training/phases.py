"""Where a step's time goes: each phase between two synchronizes. For launches of their own, since it slows them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Callable

import torch

from perf.training.meter import Clock, Meter

PHASES = ("data", "copy", "forward", "backward", "optimizer")


class PhaseTimer:
    """Collects the seconds of each phase, one entry a step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0.0
        self.seconds: dict[str, list[float]] = {phase: [] for phase in PHASES}

    def start(self) -> None:
        """Start the first phase of an epoch."""
        self._clock.synchronize()
        self._last = time.perf_counter()

    def end(self, phase: str) -> None:
        """End `phase` and start the next one."""
        self._clock.synchronize()
        now = time.perf_counter()
        self.seconds[phase].append(now - self._last)
        self._last = now


def train_in_phases(
    model: torch.nn.Module,
    device: torch.device,
    train_loader: Iterable[Any],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    meter: Meter,
    timer: PhaseTimer,
) -> bool:
    """Do what `perf.training.loop.train` does, with the time of every phase. DDP's all-reduce lies in ``backward``."""
    model.train()
    timer.start()
    for data, target in train_loader:
        timer.end("data")
        data, target = data.to(device), target.to(device)
        timer.end("copy")
        optimizer.zero_grad()
        output = model(data)
        loss = loss_function(output, target)
        timer.end("forward")
        loss.backward()
        timer.end("backward")
        optimizer.step()
        timer.end("optimizer")
        if meter.step(loss, target.size(0)):
            return False
        timer.start()
    return True
