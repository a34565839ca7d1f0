"""A run's launches as TensorBoard event files: a folder a launch, by group and variant."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from perf.contract import LaunchRecord
from perf.report.tfevents import events

__all__ = ["EVENT_FILE", "scalars", "write"]

EVENT_FILE = "events.out.tfevents.stackproof"
"""TensorBoard reads every file whose name holds ``tfevents``."""

Scalar = tuple[float, int, str, float]


def write(records: Sequence[LaunchRecord], folder: Path) -> int:
    """Write ``<folder>/<group>/<variant>/<launch>/events.out.tfevents.stackproof`` for each launch; return how many.

    Each file is written whole, and an earlier one is replaced: TensorBoard shows each launch once.

    Raises
    ------
    OSError
        If a file can't be written.
    """
    for found in records:
        place = folder.joinpath(*map(_name, (found.group, found.variant + _plan(found), found.launch)))
        place.mkdir(parents=True, exist_ok=True)
        _write_whole(place / EVENT_FILE, events(scalars(found), found.started_at))
    return len(records)


def scalars(found: LaunchRecord) -> Iterator[Scalar]:
    """Yield a launch's points: Unix time, step, tag, value.

    Tags are ``step_seconds/rank_<n>`` and ``samples_per_second/all_ranks`` over the steps of the window,
    ``loss/first_and_last_tenth``, ``epoch/seconds``, ``epoch/validation_loss`` and ``epoch/validation_accuracy``.
    Times of steps count from the launch's start, since a record does not say when its window began.
    """
    for rank, steps in enumerate(found.step_seconds):
        moment = found.started_at
        for step, seconds in enumerate(steps):
            moment += seconds
            yield moment, step, f"step_seconds/rank_{rank}", seconds
    yield from _rates(found)
    last = max(found.total_steps, default=0)
    for step, loss in ((0, found.loss_first), (last, found.loss_last)):
        if loss is not None:
            yield found.started_at, step, "loss/first_and_last_tenth", loss
    for index, seconds in enumerate(found.epoch_seconds):
        yield found.started_at, index, "epoch/seconds", seconds
    for epoch in found.epochs[0] if found.epochs else []:
        for name in ("validation_loss", "validation_accuracy"):
            value = getattr(epoch, name)
            if value is not None:
                yield found.started_at, epoch.index, f"epoch/{name}", value


def _rates(found: LaunchRecord) -> Iterator[Scalar]:
    """Yield the throughput of each step: what all ranks train in it, over the slowest rank's time."""
    count = min((len(steps) for steps in found.step_seconds), default=0)
    if not count or not found.samples:
        return
    a_step = found.samples / max(len(steps) for steps in found.step_seconds)
    moment = found.started_at
    for step in range(count):
        seconds = max(steps[step] for steps in found.step_seconds)
        moment += seconds
        if seconds > 0.0:
            yield moment, step, "samples_per_second/all_ranks", a_step / seconds


def _plan(found: LaunchRecord) -> str:
    return "" if found.plan == "window" else f"+{found.plan}"


def _name(text: str) -> str:
    """Make any text one folder's name that leads nowhere else."""
    name = quote(text, safe="@+=,")
    return name.replace(".", "%2E") if name.strip(".") == "" else name


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or nothing."""
    temporary = path.with_name(f".writing-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
