"""The learning rate of a large batch: scaled with it, and reached by a linear warm-up; set and noted step by step.

The rule is that of the SC22 tutorial (``none``, ``linear``, ``sqrt`` of the global batch over a base batch). It
multiplies the workload's own rate; the workload's schedule, stepped once an epoch, multiplies on top of it.
"""

from __future__ import annotations

import math
from typing import Any

import torch

RULES = ("", "none", "linear", "sqrt")
"""What the rate is multiplied by; "" leaves it alone and notes nothing."""


def scale_of(rule: str, global_batch: int, base_batch: int) -> float:
    """Return what a rate is multiplied by for a global batch."""
    ratio = global_batch / base_batch
    return {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[rule]


def factor_at(step: int, scale: float, warmup: int) -> float:
    """Return the factor at a step, counted from 0: it rises linearly and is `scale` from step `warmup` - 1 on."""
    return scale * min(1.0, (step + 1) / warmup) if warmup else scale


class ScaledRate:
    """Sets an optimizer's rate before each step, and notes the rate that each step was taken with.

    Parameters
    ----------
    optimizer
        Its `step` is hooked; the loop stays as it is.
    scale, warmup
        See `factor_at`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, scale: float, warmup: int) -> None:
        self._scale = scale
        self._warmup = warmup
        self._before = 1.0
        self.base = float(optimizer.param_groups[0]["lr"])
        self.used: list[float] = []
        self._handle = optimizer.register_step_pre_hook(self._set)

    def _set(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        factor = factor_at(len(self.used), self._scale, self._warmup)
        for group in optimizer.param_groups:
            # Relative, since the schedule multiplies too.
            group["lr"] *= factor / self._before
        self._before = factor
        self.used.append(float(optimizer.param_groups[0]["lr"]))

    def describe(self) -> dict[str, Any]:
        """Return base, scale and warm-up, and the rates that were used at the steps that tell them apart."""
        last = len(self.used) - 1
        steps = sorted({0, self._warmup // 2, max(0, self._warmup - 1), self._warmup, last})
        return {
            "base": self.base,
            "scale": self._scale,
            "warmup": self._warmup,
            "steps": len(self.used),
            "used": {str(step): self.used[step] for step in steps if 0 <= step <= last},
        }
