"""The training loop, written like the tutorials whose line profile it is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

import torch

from perf.training.meter import Meter


def train(
    model: torch.nn.Module,
    device: torch.device,
    train_loader: Iterable[Any],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    meter: Meter,
) -> bool:
    """Train for one epoch, or until the meter has what it needs; return whether the epoch was whole."""
    model.train()
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = loss_function(output, target)
        loss.backward()
        optimizer.step()
        if meter.step(loss, target):
            return False
    return True


def train_with(
    step: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    model: torch.nn.Module,
    train_loader: Iterable[Any],
    meter: Meter,
) -> bool:
    """Do what `train` does with a step that is more than its five lines (see `perf.training.steps`)."""
    model.train()
    for data, target in train_loader:
        loss = step(data, target)
        if meter.step(loss, target):
            return False
    return True


def drain(train_loader: Iterable[Any], meter: Meter) -> bool:
    """Take batches and do nothing with them: mode ``io``."""
    for _data, target in train_loader:
        if meter.step(None, target):
            return False
    return True
