"""Where the time before steady training goes: a launch's start, and what its first epoch takes beyond a later one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

__all__ = ["first_epoch_parts", "in_words", "start_parts", "start_up"]


def start_parts(startup: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each part of a rank's start, from a record's ``startup_seconds``.

    Parts that a record does not hold are left out.
    """
    parts = {
        name: startup[key]
        for name, key in (
            ("interpreter", "interpreter"),
            ("imports", "imports"),
            ("fork", "fork"),
            ("devices", "devices"),
            ("process group", "process_group"),
        )
        if key in startup
    }
    for name, begins, ends in (
        ("data", "until_data", "until_build"),
        ("network and optimizer", "until_build", "until_warm_up"),
    ):
        if begins in startup and ends in startup:
            parts[name] = startup[ends] - startup[begins]
    if "data" in parts:
        # What of it came before the first use of the devices is told by itself.
        parts["data"] += startup.get("data", 0.0)
    return parts


def start_up(ranks: Sequence[Mapping[str, float]], first_step_seconds: float | None) -> float | None:
    """Return the seconds from a launch's first process to the end of its first training step, on its slowest rank.

    Parameters
    ----------
    ranks
        ``startup_seconds`` of each rank.
    first_step_seconds
        From the first epoch's start to the end of its first step.

    Returns
    -------
    float or None
        None where a rank, or the first step, does not say.
    """
    keys = ("imports", "process_group", "until_warm_up")
    if first_step_seconds is None or not ranks or any(key not in rank for rank in ranks for key in keys):
        return None
    # The interpreter's own start is known where /proc tells when a process began; older records don't hold the first
    # use of the devices, and few have data that were opened before it.
    known = ("interpreter", "data", "devices")
    whole = (sum(rank.get(key, 0.0) for key in known) + sum(rank[key] for key in keys) for rank in ranks)
    return max(whole) + first_step_seconds


def first_epoch_parts(
    epoch_seconds: Sequence[float],
    first_batch_seconds: Sequence[float],
    first_step_seconds: float | None,
    step_seconds: float,
) -> dict[str, float]:
    """Attribute what the first epoch takes beyond a later one.

    Parameters
    ----------
    epoch_seconds
        Seconds of each epoch, at least two.
    first_batch_seconds
        Wait for the first batch of each epoch: the start of the loader's workers, and a cold page cache.
    first_step_seconds
        From the first epoch's start to the end of its first step, that wait included; None if it was not measured.
    step_seconds
        A steady step.

    Returns
    -------
    dict
        Seconds of ``workers and first batch``, ``first step`` (kernels are loaded, compiled, searched for) and ``rest``
        (autotuning in later steps, clocks, noise); they sum to the first epoch's excess and may be negative.

    Raises
    ------
    ValueError
        If there are fewer than two epochs.
    """
    if len(epoch_seconds) < 2 or len(first_batch_seconds) != len(epoch_seconds):
        raise ValueError(
            f"{len(epoch_seconds)} epochs with {len(first_batch_seconds)} first batches tell no excess; two are needed"
        )
    excess = epoch_seconds[0] - statistics.median(epoch_seconds[1:])
    batch = first_batch_seconds[0] - statistics.median(first_batch_seconds[1:])
    step = 0.0 if first_step_seconds is None else first_step_seconds - first_batch_seconds[0] - step_seconds
    return {"workers and first batch": batch, "first step": step, "rest": excess - batch - step}


def in_words(parts: Mapping[str, float]) -> str:
    """Return parts with their seconds, the largest first; of what takes less than a millisecond only that."""
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return ", ".join(
        f"{name} {'below 1 ms' if abs(seconds) < 1e-3 else f'{seconds:.3g} s'}" for name, seconds in ordered
    )
