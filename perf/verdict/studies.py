"""Predictions held against what was measured: time against work, memory against batch. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Line", "larger_network_in_words", "line_through"]


@dataclass(frozen=True)
class Line:
    """Memory as ``fixed + each * batch``, in bytes."""

    fixed: float
    each: float

    def largest(self, memory: float) -> int:
        """Return the largest batch that fits into so much memory, if the line goes on; 0 if none does."""
        if self.each <= 0.0:
            raise ValueError("memory does not grow with the batch, so no batch is the largest")
        return max(0, math.floor((memory - self.fixed) / self.each))


def line_through(batches: Sequence[float], peaks: Sequence[float]) -> Line:
    """Return the line of least squares through peaks of memory over batches.

    Raises
    ------
    ValueError
        If there are fewer than two different batches.
    """
    if len(set(batches)) < 2:
        raise ValueError("a line needs two different batches")
    fit = statistics.linear_regression(batches, peaks)
    return Line(fit.intercept, fit.slope)


def larger_network_in_words(time: float, parameters: float, flops: float) -> str:
    """Say whether a larger network's step grows as its parameters or its FLOPs would have it.

    Parameters
    ----------
    time, parameters, flops
        Of the larger network over the smaller one's.
    """
    said = (
        f"The step takes {time:.3g} times as long; there are {parameters:.3g} times as many parameters and {flops:.3g} "
        f"times as many operations."
    )
    if time < 0.8 * flops:
        return f"{said} Less than the operations would have it: something else bounds both, the host or the loader."
    if time > 1.25 * flops:
        return f"{said} More than the operations would have it: the larger network runs less efficiently."
    return f"{said} It grows as the operations do, which is what an expectation should rest on."
