"""Peak memory of the devices, a bar a side. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perf.contract import LaunchRecord
from perf.report.figures.bars import Quantity, bars
from perf.report.figures.launches import Side
from perf.report.figures.model import Figure
from perf.report.text import clean

__all__ = ["memory_pictures"]


def memory_pictures(groups: Mapping[str, Sequence[Side]]) -> list[Figure]:
    """Largest peak of a launch over its devices, for groups whose launches know it."""
    peak = Quantity("peak memory of the fullest device, as torch allocated it", "MiB", 2.0**-20, _peak)
    figures = []
    for group, found in groups.items():
        figure = bars(
            f"memory-{group}",
            f"Memory, {clean(group)}",
            "The largest peak of any rank's device. What torch's allocator holds beyond that, and what libraries take "
            "beside it, is not in it.",
            found,
            peak,
        )
        if figure is not None:
            figures.append(figure)
    return figures


def _peak(launch: LaunchRecord) -> float | None:
    return max((float(size) for rank in launch.peak_memory_bytes for size in rank.values()), default=None)
