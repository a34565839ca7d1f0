"""Optimizers and schedules that several workloads offer by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, TypeVar

from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LRScheduler, StepLR

T = TypeVar("T")


def choose(kind: str, name: str, makers: Mapping[str, Callable[[], T]]) -> T:
    """Make what `name` says; the first entry for "".

    Raises
    ------
    ValueError
        There is no such name.
    """
    if name and name not in makers:
        raise ValueError(f"{kind} {name!r} is not one of {', '.join(makers)}")
    return makers[name or next(iter(makers))]()


def schedule(optimizer: Optimizer, name: str, epochs: int, gamma: float) -> LRScheduler:
    """Return a schedule that is stepped once an epoch.

    Parameters
    ----------
    name : str
        ``step`` and ``exponential`` (both multiply the rate by `gamma` after each epoch), ``cosine`` (to 0 after
        `epochs`) or ``constant``.
    epochs : int
        Epochs that will be trained; at least 1 is taken.
    gamma : float
        Factor an epoch.
    """
    return choose(
        "schedule",
        name,
        {
            "step": lambda: StepLR(optimizer, step_size=1, gamma=gamma),
            "exponential": lambda: ExponentialLR(optimizer, gamma=gamma),
            "cosine": lambda: CosineAnnealingLR(optimizer, T_max=max(1, epochs)),
            "constant": lambda: StepLR(optimizer, step_size=max(1, epochs) + 1, gamma=1.0),
        },
    )
