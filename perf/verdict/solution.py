"""Time to solution: when a training first was as good as it had to be, on the wall clock; and rates at steps. Pure.

Speed alone is no success: a large batch takes fewer steps an epoch and may be far from the target when it ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Solution", "rate_at", "solution_of"]


@dataclass(frozen=True)
class Solution:
    """When a training reached its target.

    Attributes
    ----------
    seconds
        From the first epoch's start to the end of the epoch after which the target was kept; None if it never was.
    epochs
        Epochs until then; all of them if it never was.
    best
        The smallest validation loss; nan if none was finite.
    """

    seconds: float | None
    epochs: int
    best: float


def solution_of(epoch_seconds: Sequence[float], losses: Sequence[float | None], target: float) -> Solution:
    """Return when a validation loss was first at most `target`.

    Parameters
    ----------
    epoch_seconds
        Seconds of each epoch on the slowest rank, validation apart: a site that validates less often needs no more.
    losses
        Validation loss after each epoch; None where it was not finite.
    target
        The largest loss that counts as solved.

    Raises
    ------
    ValueError
        If there are not as many losses as epochs, or none.
    """
    if not losses or len(losses) != len(epoch_seconds):
        raise ValueError(f"{len(losses)} validation losses of {len(epoch_seconds)} epochs tell no solution")
    best = min((loss for loss in losses if loss is not None), default=math.nan)
    for place, loss in enumerate(losses):
        if loss is not None and loss <= target:
            return Solution(math.fsum(epoch_seconds[: place + 1]), place + 1, best)
    return Solution(None, len(losses), best)


def rate_at(step: int, base: float, rule: str, ratio: float, warmup: int) -> float:
    """Return the learning rate that a step of the first epoch is to be taken with.

    Parameters
    ----------
    step
        From 0.
    base
        The workload's own rate.
    rule
        ``none``, ``linear`` or ``sqrt``.
    ratio
        Global batch over base batch.
    warmup
        Steps of the linear rise; 0 for none.
    """
    scaled = base * {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[rule]
    return scaled if step + 1 >= warmup else scaled * (step + 1) / warmup
