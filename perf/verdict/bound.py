"""What bounds a run, in words: its data, its host, its device; and where more loader workers stop helping.

After benchy's three measures: ``io`` the loader alone, ``synthetic`` training on batches that lie on the device,
``full`` both. Full is bounded by the slower of the two, and can fall below it where they compete for the host's cores.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.verdict.inputs import positive_logs
from perf.verdict.outcome import Judgement
from perf.verdict.words import percent, rounded

__all__ = ["Bound", "bound_of", "gain_in_words", "host_or_device", "knee"]

CONTENTION = 0.85
"""Full below this part of the slower measure is contention: the SC22 tutorial shows 0.98 with few loader workers, and
0.71 to 0.81 where 16 workers and the training process share the host."""

STARVED = 0.05
"""A loader below this part of what the device could take is not worth tuning in small steps; it is named as such. The
SC22 tutorial's native loader on Summit gave 4.75 of 102 samples/s."""

AHEAD_STEPS = 0.5
"""A host that has queued this many steps, or more, when the window ends runs ahead of its device.

CUDA queues about a thousand launches, and then lets the host wait: 5 steps of `unet3d`, 1.7 of `resnet50` at 224, and
0.66 of `resnet152` at 224, whose device works all the time (H200s, 2026-11-29)."""

BEHIND_STEPS = 0.1
"""A host that has queued less than this is what the device waits for. On H200s `mnist_cnn` at its own batch showed
0.005 to 0.07; the ResNets at 32x32 and 128 a batch 0.001 to 0.08 in most launches, and up to 0.7 where their host was
quick. A step that reads its device, as a gradient scaler's does, leaves none queued either, whoever holds it up."""

KNEE = 0.95
"""The knee of a sweep is the smallest count that gives this part of the best: launch medians of a loader spread by 5 %
and more, so smaller gains are not seen."""

WAITING = 0.5
"""A run that waits for its data for more than half of its time is held up by nothing else."""

NO_CHANGE = 0.03
"""A rung whose interval lies within 3 % either way changes nothing that one would climb it for."""


@dataclass(frozen=True)
class Bound:
    """What bounds a run: ``data``, ``host``, ``device`` or ``unknown``; whether its parts compete; and a sentence.

    `efficiency` is full over the slower of the other two.
    """

    word: str
    contention: bool
    efficiency: float
    sentence: str


def bound_of(
    full: Sequence[float], synthetic: Sequence[float], io: Sequence[float], drain_steps: float | None
) -> Bound:
    """Say what bounds a run.

    Parameters
    ----------
    full, synthetic, io
        Throughput of each launch in each mode, samples/s.
    drain_steps
        Steps that the device had still to do when the host had queued the last one, in mode ``synthetic``; None on a
        CPU, which is its own host.

    Raises
    ------
    ValueError
        If a mode has no launch, or a rate is not positive and finite.
    """
    for name, rates in (("full", full), ("synthetic", synthetic), ("io", io)):
        if not rates:
            raise ValueError(f"mode {name} has no launch: the series did not complete")
        positive_logs(rates, f"the mode {name}", "samples/s")
    whole, compute, data = (statistics.median(rates) for rates in (full, synthetic, io))
    efficiency = whole / min(compute, data)
    if data < compute:
        word = "data"
        sentence = (
            f"the loader alone gives {rounded(data)} samples/s, training alone could take {rounded(compute)}"
        )
        if data < STARVED * compute:
            sentence += (
                f": {percent(data / compute)} of it, so that the device is idle nearly all of the time"
            )
    else:
        word = host_or_device(drain_steps)
        sentence = {
            "host": f"the host queues work more slowly than the device does it, at {rounded(compute)} samples/s; "
            f"the loader alone gives {rounded(data)}",
            "device": f"the device does {rounded(compute)} samples/s, the loader alone gives {rounded(data)}",
            "unknown": f"training alone does {rounded(compute)} samples/s, the loader alone gives {rounded(data)}",
        }[word]
    contention = efficiency < CONTENTION
    if contention:
        sentence += (
            f"; together they do {whole:.4g}, {percent(efficiency)} of the slower one: contention, loader and training "
            f"take the host's cores or memory from each other"
        )
    return Bound(word, contention, efficiency, f"Bound by {_THING[word]}: {sentence}.")


_THING = {"data": "its data", "host": "the host", "device": "the device", "unknown": "training"}


def host_or_device(drain_steps: float | None) -> str:
    """Say whether a run on data that lie on the device is bound by the ``host``, the ``device``, or ``unknown``."""
    if drain_steps is None:
        return "device"
    if drain_steps >= AHEAD_STEPS:
        return "device"
    return "host" if drain_steps < BEHIND_STEPS else "unknown"


def gain_in_words(found: Judgement, drain_steps: float | None, wait_share: float = 0.0) -> str:
    """Say what a rung of the ladder gained, and why it changed nothing where it did.

    Parameters
    ----------
    found
        Step time of the rung over that without it: below 1 is a gain.
    drain_steps
        As in `bound_of`, of the side without the rung; of the one with it where that alone does not wait for copies.
    wait_share
        Part of that side's window in which it waited for its data.
    """
    low, high = found.bounds
    times = f"{1 / found.estimate:.3g} times as fast"
    if low is None or high is None:
        low = high = found.estimate
        gain, noise = f"{times} in one launch a side", "; how far launches differ is not known"
    else:
        gain, noise = f"{times} ({1 / high:.3g} to {1 / low:.3g})", ""
    if high < 1 - NO_CHANGE or low > 1 + NO_CHANGE:
        return f"It is {gain}{noise}."
    if not 1 - NO_CHANGE <= found.estimate <= 1 + NO_CHANGE:
        if low <= 1 <= high:
            return f"It is {gain}, which is not beyond noise."
        return f"It is {gain}, which may be a change of less than {NO_CHANGE:.0%}."
    word = "data" if wait_share > WAITING else host_or_device(drain_steps)
    why = {
        "data": "the run waits for its data more than half of the time",
        "host": "the run is bound by the host, which queues work more slowly than the device does it",
        "device": "it is in force, and the device's kernels gain nothing from it",
        "unknown": "it is in force; whether host or device holds the run up is not clear",
    }[word]
    return f"It changes nothing, {gain}: {why}."


def knee(rates: Mapping[int, float]) -> tuple[int, bool]:
    """Return the smallest count of workers that gives nearly the best throughput, and whether the largest gives less.

    Parameters
    ----------
    rates
        Throughput by count of workers; at least one.
    """
    if not rates:
        raise ValueError("a sweep without a count has no knee")
    best = max(rates.values())
    found = min(count for count, rate in rates.items() if rate >= KNEE * best)
    return found, rates[max(rates)] < KNEE * best
