"""Validation of networks that tell classes apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

import torch
from torch import nn


def validate_classes(
    model: nn.Module,
    device: torch.device,
    loader: Iterable[tuple[torch.Tensor, torch.Tensor]],
    loss_function: Callable[..., torch.Tensor],
) -> tuple[float, float]:
    """Return the mean loss and the accuracy (0 to 1) over all samples of a loader; see `models.interface.Workload`.

    Parameters
    ----------
    loss_function : callable
        Takes output, target and ``reduction="sum"``, as those of `torch.nn.functional` do.

    Raises
    ------
    ValueError
        The loader delivered no batch.
    """
    was_training = model.training
    model.eval()
    # Sums stay on the device: an .item() for each batch would wait for the device each time.
    loss = torch.zeros((), device=device)
    correct = torch.zeros((), dtype=torch.int64, device=device)
    samples = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            loss += loss_function(output, target, reduction="sum")
            correct += (output.argmax(dim=1) == target).sum()
            samples += len(target)
    model.train(was_training)
    if samples == 0:
        raise ValueError(
            "nothing to validate on: the loader delivered no batch. Give it at least one sample."
        )
    return loss.item() / samples, correct.item() / samples
