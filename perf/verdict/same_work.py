"""Whether two stacks did the same work: facts of their launches, beside their times. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from perf.contract import LaunchRecord

MADE_ON_THE_DEVICE = ("resident", "dali")
"""Loaders whose batches are computed where they are trained on."""

BATCH_TOLERANCE = 1e-4
"""Of a batch's deviation, for its mean and deviation: summed by one thread and by two the mean of 33,554,432 float32
numbers (a batch of `unet3d`) differs by 2e-7 of it, that of two batches of 64 photographs of clothes by 5e-2."""

__all__ = ["SAMPLES_TOLERANCE", "less_work", "losses_apart"]

SAMPLES_TOLERANCE = 0.02
"""Of the samples a step: windows of records up to 2026-11-29 may hold an epoch's partial batch, and others don't."""


def less_work(old: Sequence[LaunchRecord], new: Sequence[LaunchRecord]) -> tuple[str, ...]:
    """Return why two stacks did not do the same work, one sentence a reason; none where they did.

    A step that trains another network, on other or fewer samples, or that learns nothing, may take as long as it likes:
    its time is no answer. Launches are compared in their order, which gives both sides of a round one seed.
    """
    found = []
    parameters = [sorted({launch.parameters for launch in side}) for side in (old, new)]
    if parameters[0] != parameters[1]:
        found.append(
            f"the network has {_numbers(parameters[1])} parameters with the new stack and {_numbers(parameters[0])} "
            "with the old one"
        )
    for mine, theirs in zip(old, new, strict=False):
        if mine.seed != theirs.seed:
            found.append(f"launches {mine.launch} and {theirs.launch} of one round have different seeds")
        elif not _same_batches(mine, theirs):
            found.append(
                f"launches {mine.launch} and {theirs.launch} train on other batches, at the same seed"
            )
        steps = [_steps(launch) for launch in (mine, theirs)]
        if all(steps):
            a_step = [launch.samples / count for launch, count in zip((mine, theirs), steps, strict=True)]
            if abs(a_step[1] - a_step[0]) > SAMPLES_TOLERANCE * a_step[0]:
                found.append(
                    f"launch {theirs.launch} of the new stack trains on {a_step[1]:.4g} samples a step, "
                    f"{mine.launch} of the old one on {a_step[0]:.4g}"
                )
        if _learns(mine) and not _learns(theirs):
            found.append(
                f"the loss falls in launch {mine.launch} of the old stack and not in {theirs.launch} of the new one"
            )
    return tuple(dict.fromkeys(found))


def losses_apart(
    old: Sequence[LaunchRecord], new: Sequence[LaunchRecord], *, parity: float
) -> tuple[str, ...]:
    """Return how the losses of two stacks differ by more than rounding does; none where they agree.

    Parameters
    ----------
    parity
        Part of the old stack's first loss by which a median over launches may differ.
    """
    first = _median(old, "loss_first")
    found = []
    for name in ("loss_first", "loss_last"):
        expected, seen = _median(old, name), _median(new, name)
        if first is None or expected is None or seen is None:
            continue
        if abs(seen - expected) > parity * abs(first):
            found.append(f"{name} is {seen:.4g} with the new stack and {expected:.4g} with the old one")
    return tuple(found)


def _median(launches: Sequence[LaunchRecord], name: str) -> float | None:
    values = [value for launch in launches if (value := getattr(launch, name)) is not None]
    return statistics.median(values) if values else None


def _steps(launch: LaunchRecord) -> int:
    return sum(len(rank) for rank in launch.step_seconds)


def _same_batches(mine: LaunchRecord, theirs: LaunchRecord) -> bool:
    """Say whether all ranks of two launches began with the same batch, as far as two stacks can make the same."""
    if len(mine.effective) != len(theirs.effective):
        return False
    return all(_same_batch(a, b) for a, b in zip(mine.effective, theirs.effective, strict=True))


def _same_batch(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    first, second = mine.get("first_batch"), theirs.get("first_batch")
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return first == second
    # Sums of many numbers, whose order is each torch's own; a sample made on the device is rounded by it.
    loose = {"mean", "deviation"}
    if (mine.get("loader") or {}).get("loader") in MADE_ON_THE_DEVICE:
        loose.add("sample")
    exact = all(first.get(key) == second.get(key) for key in {*first, *second} - loose)
    scale = BATCH_TOLERANCE * abs(first.get("deviation") or 0.0)
    sums = [(first.get(key), second.get(key)) for key in ("mean", "deviation")]
    return exact and all(a == b if a is None or b is None else abs(a - b) <= scale for a, b in sums)


def _learns(launch: LaunchRecord) -> bool:
    first, last = launch.loss_first, launch.loss_last
    return first is not None and last is not None and last < first


def _numbers(values: Sequence[int]) -> str:
    return " and ".join(f"{value:,}" for value in values)
