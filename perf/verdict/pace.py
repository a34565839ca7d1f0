"""What a step of a launch takes, for sides that are held against each other: a median, or a mean. Pure.

Workers deliver batches in groups: steps wait for none of some batches and long for the next, so that a median can tell
nothing of the wait. It was 102 ms for a mean of 141 of `unet3d` on 4 workers (docs/measurements/2026-11-29-h200-x4).
Where little is waited for, a median is the steadier one: rare long steps don't move it.

One choice for all launches of all sides. Made launch by launch, by a wait that what is judged may itself change, it
would hold means against medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perf.contract import LaunchRecord

__all__ = ["WAITED", "of_side", "phase_time", "step_time", "step_times", "waits"]

WAITED = 0.25
"""Part of a window for which data may be waited for before means are taken. It lies in a gap: of all launches in
docs/measurements on 2026-11-29 those whose loaders kept up waited for up to 21 % on CPUs and 18 % on GPUs, the others
for 29 % and more (docs/measurements/waited.py prints it). What a median can hide below it is less than the limits of a
loader's share."""


def waits(launches: Sequence[LaunchRecord]) -> bool:
    """Return whether a side waits for its data: the median, over its launches, of their share of waiting."""
    shares = [share for launch in launches if (share := launch.wait_share) is not None]
    return bool(shares) and statistics.median(shares) > WAITED


def step_times(*sides: Sequence[LaunchRecord]) -> list[list[float]]:
    """Return what a step of each launch takes, in seconds, a list a side; by means where any of the sides waits."""
    mean = any(waits(side) for side in sides)
    return [of_side(side, mean=mean) for side in sides]


def of_side(launches: Sequence[LaunchRecord], *, mean: bool) -> list[float]:
    """Return what a step of each launch of one side takes, in seconds, where the choice was made with the others."""
    return [one.mean_step_seconds if mean else one.median_step_seconds for one in launches]


def phase_time(name: str, seconds: Sequence[float]) -> float:
    """Return what a phase of a step takes: its median, but of what is waited for data the mean."""
    return statistics.fmean(seconds) if name == "data" else statistics.median(seconds)


def step_time(launch: LaunchRecord) -> float:
    """Return what a step of one launch takes by itself: to be told, never to be held against another one."""
    return step_times([launch])[0][0]
