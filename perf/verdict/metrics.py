"""What a reference can hold: quantities of which each launch gives one positive number. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.verdict.machine import RATE_UNITS

__all__ = ["METRICS", "Metric"]


@dataclass(frozen=True)
class Metric:
    """One quantity.

    Attributes
    ----------
    of
        Takes a launch; returns its number, or None where it has none.
    compared
        What two stacks are compared by, where that is another number: its spread limits the margin of a comparison.
    """

    name: str
    unit: str
    higher_is_better: bool
    of: Callable[[LaunchRecord], float | None]
    compared: Callable[[LaunchRecord], float | None] | None = None

    @property
    def direction(self) -> str:
        """Which side is the good one, as reference files write it."""
        return "higher" if self.higher_is_better else "lower"

    def values(self, launches: Sequence[LaunchRecord]) -> list[float]:
        """Return one number a launch, without the launches that have none or whose number is not positive."""
        return _positive(self.of(launch) for launch in launches)

    def compared_values(self, launches: Sequence[LaunchRecord]) -> list[float]:
        """Return what two stacks would be compared by, one number a launch."""
        take = self.compared or self.of
        return _positive(take(launch) for launch in launches)


def _positive(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value) and value > 0.0]


def _peak_memory(launch: LaunchRecord) -> float | None:
    """Return the largest peak of allocated memory of all devices, in bytes; None on a CPU, which counts none."""
    return max((float(size) for rank in launch.peak_memory_bytes for size in rank.values()), default=None)


def _rate(name: str) -> Callable[[LaunchRecord], float | None]:
    """Return what takes a component rate from a launch that measured the machine; None where it has none."""
    return lambda launch: launch.rates[name].value if name in launch.rates else None


METRICS = {
    metric.name: metric
    for metric in (
        # A/B compares median steps: a rare long step moves a window's throughput and not its median step.
        Metric(
            "throughput",
            "samples/s",
            True,
            lambda launch: launch.samples_per_second,
            lambda launch: launch.median_step_seconds,
        ),
        Metric("peak_memory", "bytes", False, _peak_memory),
        *(Metric(name, unit, True, _rate(name)) for name, unit in RATE_UNITS.items()),
    )
}
"""Every metric that a reference file may name."""
