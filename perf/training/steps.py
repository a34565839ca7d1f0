"""One training step that is more than the tutorials' loop: mixed precision, another memory format, a CUDA graph."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Optional

import torch

from perf.training.lengths import CAPTURED
from perf.training.phases import PhaseTimer

AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}
"""Precisions that are torch's autocast, and its dtype."""

EAGER_STEPS_BEFORE_CAPTURE = CAPTURED - 1
"""Steps that train before a graph is captured: libraries choose their kernels and the optimizer makes its state in the
first ones. torch asks for 3; 11 is what it asks for where DistributedDataParallel is in play."""


def make_scaler(precision: str) -> Optional[Any]:
    """Return a gradient scaler for float16, None for what needs none."""
    if precision != "fp16":
        return None
    if hasattr(torch.amp, "GradScaler"):
        # Since torch 2.3; the older name warns there.
        return torch.amp.GradScaler("cuda")
    return torch.cuda.amp.GradScaler()


class EagerStep:
    """Forward, backward and optimizer step of one batch.

    Parameters
    ----------
    model, device, loss_function, optimizer
        As in `perf.training.loop.train`.
    precision
        ``fp16`` and ``bf16`` run forward and loss under autocast, ``fp16`` with a gradient scaler.
    memory_format
        What inputs are brought into, None to leave them.
    non_blocking
        Whether the copies to the device may overlap with what follows.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        device: torch.device,
        loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
        optimizer: torch.optim.Optimizer,
        *,
        precision: str,
        memory_format: Optional[torch.memory_format] = None,
        non_blocking: bool = False,
    ) -> None:
        self._model = model
        self._device = device
        self._loss_function = loss_function
        self.optimizer = optimizer
        self._dtype = AUTOCAST.get(precision)
        self._memory_format = memory_format
        self.non_blocking = non_blocking
        self.scaler = make_scaler(precision)

    def __call__(self, data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Train on one batch and return its loss, on the device."""
        data = data.to(self._device, non_blocking=self.non_blocking)
        target = target.to(self._device, non_blocking=self.non_blocking)
        return self.train(data, target)

    def train(self, data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Train on a batch that lies on the device."""
        self.optimizer.zero_grad()
        loss = self.loss(self._model, data, target)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss

    def in_phases(self, data: torch.Tensor, target: torch.Tensor, timer: PhaseTimer) -> torch.Tensor:
        """Do what a call does, with the time of every phase behind the loader's."""
        data = data.to(self._device, non_blocking=self.non_blocking)
        target = target.to(self._device, non_blocking=self.non_blocking)
        timer.end("copy")
        self.optimizer.zero_grad()
        loss = self.loss(self._model, data, target)
        timer.end("forward")
        if self.scaler is None:
            loss.backward()
            timer.end_backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            timer.end_backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        timer.end("optimizer")
        return loss

    def loss(self, model: torch.nn.Module, data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of `model`, in the precision and memory format of this step."""
        if self._memory_format is not None:
            data = data.contiguous(memory_format=self._memory_format)
        with self.autocast():
            return self._loss_function(model(data), target)

    def autocast(self) -> Any:
        """Return the context in which forward and loss run."""
        if self._dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, self._dtype)

    def describe(self) -> dict[str, Any]:
        """Return the mixed precision that was used: autocast's dtype and the scaler's state."""
        facts: dict[str, Any] = {"autocast": None if self._dtype is None else str(self._dtype).split(".")[1]}
        if self.scaler is not None:
            # Without support in the optimizer the scaler asks the device, each step, whether a gradient overflowed.
            supported = bool(getattr(self.optimizer, "_step_supports_amp_scaling", False))
            facts["scaler"] = {
                "scale": float(self.scaler.get_scale()),
                "reads_device_each_step": not supported,
            }
        return facts


class GraphedStep:
    """A step as one CUDA graph: captured once, replayed for each batch of the same shape.

    The first steps train eagerly, on a stream of their own as capturing wants it; none is thrown away. A batch of
    another shape (an epoch's last) trains eagerly too. A learning rate is part of what was captured, so
    after the schedule changed it the step is captured anew: once an epoch.
    """

    def __init__(self, eager: EagerStep, device: torch.device) -> None:
        self._eager = eager
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._graph: Optional[torch.cuda.CUDAGraph] = None
        self._rates: list[Any] = []
        self._data: Optional[torch.Tensor] = None
        self._target: Optional[torch.Tensor] = None
        self._loss: Optional[torch.Tensor] = None
        self.captures = 0
        self.replays = 0
        self.eager_steps = 0

    def __call__(self, data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Train on one batch and return its loss, on the device."""
        if self._data is None:
            self._data, self._target = self._like(data), self._like(target)
        assert self._target is not None
        fits = data.shape == self._data.shape and target.shape == self._target.shape
        if not fits or self.eager_steps < EAGER_STEPS_BEFORE_CAPTURE:
            return self._train_eagerly(data, target)
        self._data.copy_(data, non_blocking=self._eager.non_blocking)
        self._target.copy_(target, non_blocking=self._eager.non_blocking)
        rates = [group["lr"] for group in self._eager.optimizer.param_groups]
        if self._graph is None or rates != self._rates:
            self._capture(rates)
        assert self._graph is not None
        assert self._loss is not None
        self._graph.replay()
        self.replays += 1
        # The next replay writes over it.
        return self._loss.clone()

    def _like(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(batch, device=self._device)

    def _train_eagerly(self, data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            loss = self._eager(data, target)
        current.wait_stream(self._stream)
        self.eager_steps += 1
        return loss

    def _capture(self, rates: list[Any]) -> None:
        assert self._data is not None
        assert self._target is not None
        # Gradients are made inside the graph's own memory, so none may exist before.
        self._eager.optimizer.zero_grad(set_to_none=True)
        self._graph = torch.cuda.CUDAGraph()
        # A loader's thread pins memory meanwhile, which would end a capture that watches all threads.
        with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"):
            self._loss = self._eager.train(self._data, self._target)
        self._rates = rates
        self.captures += 1

    def describe(self) -> dict[str, Any]:
        """Return how often the step was captured and replayed, and how many steps ran eagerly."""
        return {"captures": self.captures, "replays": self.replays, "eager_steps": self.eager_steps}
