"""Where a step's time goes: each phase between two synchronizes. For launches of their own, since it slows them.

DDP sends gradients while the backward pass goes on. What a step waits for them is the time from the last gradient to
the end of ``backward``: that is its ``communication``, and what was hidden behind the pass is none of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Callable, Optional

import torch
from torch.nn.parallel import DistributedDataParallel

from perf.training.clocks import Clock
from perf.training.meter import Meter

PHASES = ("data", "copy", "forward", "backward", "communication", "optimizer")


class PhaseTimer:
    """Collects the seconds of each phase, one entry a step."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0.0
        self.seconds: dict[str, list[float]] = {phase: [] for phase in PHASES}
        self._gradients: Optional[LastGradient] = None

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

    def watch(self, model: torch.nn.Module) -> None:
        """From now on tell the wait for other ranks from the backward pass, where the model is DDP's."""
        model = getattr(model, "_orig_mod", model)
        if isinstance(model, DistributedDataParallel) and self._gradients is None:
            self._gradients = LastGradient(model)

    def end_backward(self) -> None:
        """End the backward pass, and the communication behind it."""
        waited = None if self._gradients is None else self._gradients.seconds_since()
        self.end("backward")
        if waited is not None:
            waited = min(waited, self.seconds["backward"][-1])
            self.seconds["backward"][-1] -= waited
            self.seconds["communication"].append(waited)


class LastGradient:
    """Notes when a model's last gradient was there."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._at: Any = None
        for parameter in model.parameters():
            if parameter.requires_grad:
                # Called before DDP's own hook, which hands the gradient to a bucket.
                parameter.register_post_accumulate_grad_hook(self._note)

    def _note(self, parameter: torch.Tensor) -> None:
        self._at = _mark() if parameter.is_cuda else time.perf_counter()

    def seconds_since(self) -> float:
        """Return the seconds since the last gradient, by the device's own clock where it has one; waits for it."""
        if self._at is None:
            return 0.0
        if isinstance(self._at, float):
            return time.perf_counter() - self._at
        now = _mark()
        now.synchronize()
        return float(self._at.elapsed_time(now)) / 1000.0


def _mark() -> Any:
    # On the stream that computes; NCCL has one of its own, for which this one waits at the end of the pass.
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def train_in_phases(
    model: torch.nn.Module,
    device: torch.device,
    train_loader: Iterable[Any],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    meter: Meter,
    timer: PhaseTimer,
) -> bool:
    """Do what `perf.training.loop.train` does, with the time of every phase."""

    def in_phases(data: torch.Tensor, target: torch.Tensor, timer: PhaseTimer) -> torch.Tensor:
        data, target = data.to(device), target.to(device)
        timer.end("copy")
        optimizer.zero_grad()
        output = model(data)
        loss = loss_function(output, target)
        timer.end("forward")
        loss.backward()
        timer.end_backward()
        optimizer.step()
        timer.end("optimizer")
        return loss

    return train_with_in_phases(in_phases, model, train_loader, meter, timer)


def train_with_in_phases(
    in_phases: Callable[[torch.Tensor, torch.Tensor, PhaseTimer], torch.Tensor],
    model: torch.nn.Module,
    train_loader: Iterable[Any],
    meter: Meter,
    timer: PhaseTimer,
) -> bool:
    """Do what `perf.training.loop.train_with` does with a step that tells its own phases (`EagerStep.in_phases`)."""
    model.train()
    timer.watch(model)
    timer.start()
    for data, target in train_loader:
        timer.end("data")
        loss = in_phases(data, target, timer)
        if meter.step(loss, target):
            return False
        timer.start()
    return True
