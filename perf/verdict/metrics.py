"""What a reference can hold: quantities of which each launch gives one positive number. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perf.contract import LaunchRecord
from perf.verdict.machine import RATE_UNITS

__all__ = ["METRICS", "POWER", "Metric", "busy_percent"]

POWER = "power"
"""What the GPUs of a launch draw. A reference may hold it, and nothing is judged by it alone: busy at low power is no
pass of what is (`perf.verdict.power`)."""


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


def _power(launch: LaunchRecord) -> float | None:
    """Return the mean power of the launch's GPUs in the window, in W; None where one of them could not be read."""
    found = [_watts(gpu) for gpu in _gpus(launch)]
    known = [watts for watts in found if watts is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _watts(gpu: Mapping[str, Any]) -> float | None:
    """Return a GPU's power: its energy by the window where that was counted, right for short windows too."""
    counted = gpu.get("energy_watts")
    if isinstance(counted, (int, float)):
        return float(counted)
    averaged = (gpu.get("power_watts") or {}).get("mean")
    return float(averaged) if isinstance(averaged, (int, float)) else None


def busy_percent(launch: LaunchRecord) -> float | None:
    """Return the mean utilization of the launch's GPUs in the window, in percent; None where it can't be read."""
    found = [(gpu.get("utilization_percent") or {}).get("mean") for gpu in _gpus(launch)]
    known = [float(share) for share in found if isinstance(share, (int, float))]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _gpus(launch: LaunchRecord) -> list[Mapping[str, Any]]:
    """Return what was seen of the GPUs that the launch used; of the only one where nobody says who used it."""
    seen = launch.telemetry.get("gpus") or []
    return [gpu for gpu in seen if gpu.get("ranks") or len(seen) == 1]


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
        Metric(POWER, "W", True, _power),
        *(Metric(name, unit, True, _rate(name)) for name, unit in RATE_UNITS.items()),
    )
}
"""Every metric that a reference file may name."""
