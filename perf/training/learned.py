"""What a training came to: its losses in short, and a digest of the parameters that it ended with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Optional

import torch


def loss_tenths(
    losses: Sequence[torch.Tensor], steps: Sequence[int], total_steps: int
) -> tuple[Optional[float], Optional[float], Optional[bool]]:
    """Return the mean losses of the first and the last tenth of all steps, and whether all that were kept are finite.

    Parameters
    ----------
    losses
        Those that were kept, on their device.
    steps
        The step of each, beginning with 0, the training's first. A loss stands for the steps up to the next one that
        was kept.
    total_steps
        All steps of the training.
    """
    if not losses:
        return None, None, None
    values = torch.stack(list(losses)).double().cpu()
    if not bool(torch.isfinite(values).all()):
        return None, None, False
    tenth = max(1, total_steps // 10)
    edges = torch.tensor([*steps, total_steps], dtype=torch.float64)
    first, last = (
        (edges.clamp(begin, begin + tenth).diff() * values).sum() / tenth
        for begin in (0, total_steps - tenth)
    )
    return float(first), float(last), True


def digest(model: torch.nn.Module) -> str:
    """Return a digest of all parameters, bit for bit: DDP keeps them equal on all ranks."""
    found = hashlib.sha256()
    sums = []
    for name, parameter in sorted(model.named_parameters()):
        found.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode())
        sums.append(_bit_sums(parameter.detach()))
    found.update(torch.stack(sums).cpu().numpy().tobytes())
    return found.hexdigest()[:32]


def _bit_sums(values: torch.Tensor) -> torch.Tensor:
    """Return two sums over the bits of all elements, the second weighted by place, modulo 2**64; shape (2,), int64.

    They are summed where the parameters lie: 468 MB of the largest network took 3 s to copy and to hash on one core.
    Sums of integers do not depend on the order of summation, as those of floating-point numbers do.
    """
    as_integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = values.contiguous().view(as_integers[values.element_size()]).flatten().to(torch.int64)
    places = torch.arange(len(bits), device=bits.device, dtype=torch.int64).mul_(2).add_(1)
    return torch.stack([bits.sum(), bits.mul_(places).sum()])
