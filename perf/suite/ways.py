"""Single, DataParallel and DDP beside each other, in words. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from perf.suite.source import Measurement, alike
from perf.verdict.words import rounded

__all__ = ["AUTOTUNING", "PUBLISHED", "memory_in_words", "shares_in_words", "way_in_words"]

AUTOTUNING = (
    "DataParallel starts new threads for every forward pass, and what cuDNN's autotuner found belongs to a thread: "
    "every step searches again, without a word. Leave torch.backends.cudnn.benchmark off under DataParallel, or "
    "use DDP, whose processes keep what they found."
)

WAITS = 0.1
"""A side that waits for its data for this part of its time is told: loaders then are part of the comparison."""

PUBLISHED = (
    "These are the settings as they were published: loader workers and batch a GPU differ between the ways, so the "
    "ratio holds the loader's share and the batch's as well as the way's (confounded). The group dp compares at "
    "equal ones."
)


def way_in_words(measured: Measurement, single: Measurement) -> str:
    """Return throughput, speed-up and efficiency of a way to use several GPUs, with its batch and workers."""
    launch, alone = measured.first, single.first
    devices = launch.gpus * launch.nodes
    rate, base = (statistics.median(side.throughputs) for side in (measured, single))
    steps = [statistics.median(side.step_times) * 1e3 for side in alike(measured, single)]
    return (
        f"{launch.strategy} on {devices} GPUs ({launch.batch_size} samples and {launch.workers} workers a GPU) gives "
        f"{rounded(rate)} samples/s, one process ({alone.batch_size} and {alone.workers}) {rounded(base)}: speed-up "
        f"{rate / base:.3g}, efficiency {rate / base / devices:.2f}; a step takes "
        f"{steps[0]:.4g} and {steps[1]:.4g} ms."
        f"{_waits_in_words(measured, single)}"
    )


def _waits_in_words(measured: Measurement, single: Measurement) -> str:
    """Return a sentence where one of two sides waits for its loader, whose speed is then part of the answer."""
    shares = {"it waits": measured.wait_share, "one process": single.wait_share}
    if max(shares.values()) < WAITS:
        return ""
    return (
        " For its data " + ", ".join(f"{who} {share:.0%} of the time" for who, share in shares.items()) + "."
    )


def memory_in_words(way: str, peaks: Mapping[str, float], *, windows: bool) -> str:
    """Return a sentence on the peak of memory of each device, in bytes, of windows or of whole launches."""
    each = ", ".join(f"{name} {peak / 1024**2:.4g} MiB" for name, peak in peaks.items())
    when = "the window" if windows else "the whole launch"
    return f"Peak of allocated memory with {way}, of {when}: {each}."


def shares_in_words(shares: Mapping[str, float]) -> str:
    """Return a sentence on the share that the forward pass has of a step, by way."""
    each = ", ".join(f"{way} {share:.1%}" for way, share in shares.items())
    return f"The forward pass takes this part of a step: {each} (timed in phases, which synchronizes between them)."
