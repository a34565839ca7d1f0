"""How long launches may be expected to take on GPUs, before any was made. Pure."""

from __future__ import annotations

from perf.catalogue import Member
from perf.variants import Variant

__all__ = ["START_SECONDS", "expected_seconds", "is_known"]

BY_FORK = {
    ("mnist_cnn", "window", "single"): 3.7,
    ("mnist_cnn", "window", "dp"): 5.7,
    ("mnist_cnn", "window", "ddp"): 6.2,
    ("mnist_cnn", "epochs", "single"): 11.6,
    ("mnist_cnn", "epochs", "dp"): 23.0,
    ("mnist_cnn", "epochs", "ddp"): 11.5,
    ("mnist_cnn", "audit", "single"): 2.3,
    ("mnist_cnn", "audit", "ddp"): 4.4,
    ("resnet50", "window", "single"): 4.3,
    ("resnet50", "window", "dp"): 15.3,
    ("resnet50", "window", "ddp"): 7.1,
    ("resnet50", "epochs", "single"): 26.6,
    ("resnet50", "epochs", "dp"): 69.7,
    ("resnet50", "epochs", "ddp"): 21.5,
    ("resnet50", "audit", "single"): 2.9,
    ("resnet50", "audit", "ddp"): 3.8,
    ("resnet50_224", "window", "single"): 6.6,
    ("resnet50_224", "epochs", "single"): 57.0,
    ("resnet152", "window", "single"): 6.7,
    ("resnet152", "window", "dp"): 23.0,
    ("resnet152", "window", "ddp"): 8.9,
    ("resnet152", "epochs", "single"): 71.6,
    ("resnet152", "epochs", "dp"): 118.2,
    ("resnet152", "epochs", "ddp"): 53.8,
    ("resnet152", "audit", "single"): 2.8,
    ("resnet152", "audit", "ddp"): 5.1,
    ("resnet152_224", "window", "single"): 14.4,
    ("resnet152_224", "window", "dp"): 16.5,
    ("resnet152_224", "window", "ddp"): 17.8,
    ("resnet152_224", "epochs", "single"): 124.0,
    ("unet3d", "window", "single"): 22.2,
    ("unet3d", "window", "dp"): 44.1,
    ("unet3d", "window", "ddp"): 26.2,
    ("unet3d", "epochs", "single"): 95.4,
    ("unet3d", "audit", "single"): 1.3,
    ("unet3d", "audit", "ddp"): 4.5,
    ("unet3d_tiny", "solution", "single"): 2.0,
    ("machine", "rates", "single"): 9.3,
    ("machine", "rates", "ddp"): 5.1,
}
"""Seconds of one launch by fork: workload, plan, strategy. Medians of H200s in docs/measurements, of the newest folder
that has any on as many GPUs, by ``python docs/measurements/launch_seconds.py FOLDER``; `unet3d`'s are of the
real loader, alone in precision ``default``; the others are fp32. Epochs at 224 took 72.5 and 146.1 s with validations
four times as long, of which three quarters are taken off here."""

ON_FOUR = {
    ("mnist_cnn", "dp"): 11.0,
    ("mnist_cnn", "ddp"): 7.5,
    ("resnet50", "dp"): 25.0,
    ("resnet50", "ddp"): 9.0,
    ("resnet152", "dp"): 46.0,
    ("resnet152", "ddp"): 11.2,
    ("unet3d", "ddp"): 34.8,
}
"""Windows on four GPUs or more, by workload and strategy, of 2026-11-29-h200-x4: one process queues DataParallel's work
for all GPUs, and takes the longer for a step; ranks start CUDA beside each other, and share the samples of an epoch."""

IN_BF16 = {("unet3d", "single"): 13.3, ("unet3d", "ddp"): 20.4}
"""Windows on the real loader in that precision, by workload and strategy, of 2026-11-29-h200-x4."""

DIVIDED = {("unet3d", "ddp"): 13.0}
"""Windows on the real loader whose batch is shared by the ranks, of the same folder: an epoch then has as many steps as
on one GPU, and its loader all of its workers."""

SYNTHETIC = {
    ("unet3d", "fp32"): 13.1,
    ("unet3d", "tf32"): 8.8,
    ("unet3d", "fp16"): 10.0,
    ("unet3d", "bf16"): 6.5,
}
"""Windows without a loader, by workload and precision, where both make it another launch: fp32 and bf16 of
2026-11-29-h200-again, tf32 and fp16 of 2026-11-29-h200-x2, whose windows were a second longer."""

OF_BATCH = {
    ("unet3d", "fp32", 16): 7.9,
    ("unet3d", "fp32", 64): 24.1,
    ("unet3d", "fp32", 128): 46.1,
    ("unet3d", "fp32", 256): 91.2,
}
"""Windows without a loader at batches that are not the workload's own, of 2026-11-29-h200-again and, 256,
2026-11-29-h200-third: fifty steps of 0.36, 0.71 and 1.38 s."""

AUTOTUNED = {("unet3d", "fp32"): 21.3, ("unet3d", "bf16"): 3.4}
"""What cuDNN's search adds, by workload and precision: 39.1 for 17.8 s of 2026-11-29-h200-x2, and 9.9 for 6.5 of
2026-11-29-h200-again. `mnist_cnn` and `resnet50` took 0.3 to 0.7 s longer, which their launches differ
by anyway."""

AUTOTUNED_DP = {"mnist_cnn": 0.8, "resnet50": 33.1}
"""What it adds to DataParallel, whose every step searches: 6.5 for 5.7 s of 2026-11-29-h200-x2-again, 49.1 for 16.0 of
2026-11-29-h200-x2-third."""

FRESH = {"single": 8.3, "dp": 8.3, "ddp": 11.6}
"""What a fresh start of `mnist_cnn` takes longer: 12.2 for 3.9 s, and for DDP 18.4 for 6.8 s, on H100s and H200s."""

SEVERAL_RANKS = {2: 2.0, 4: 4.0}
"""What DDP's launches take longer than those of one process, by GPUs: 6.2 and 7.5 for 3.7 s of `mnist_cnn`, 8.7 and
10.7 for 6.6 of `unet3d` on data that lie on the device."""

COMPILED = 13.6
"""What torch.compile adds to a launch of `mnist_cnn`, its cache empty. To the median launch of the others 8 to 15, and
to the first of `resnet152` 83 and 119."""

UNKNOWN = max(BY_FORK.values())
"""A launch that nobody has measured is taken to last as long as the longest that was."""

START_SECONDS = 20.0
"""Until the first launch: the stack is asked what it is, and imported once more by the server of forks. 17.8 s on a
host of four H200s that had just been started, where the page cache was cold."""


def is_known(member: Member) -> bool:
    """Whether launches of a member's workload and plan were measured on GPUs, for one process at least."""
    variant = member.variant
    return variant.device == "cuda" and (variant.workload, member.plan, "single") in BY_FORK


def expected_seconds(member: Member, launcher: str) -> float | None:
    """Return how long a launch of a member takes on GPUs as far as that is known; None on a CPU, where it is not."""
    variant = member.variant
    if variant.device != "cuda":
        return None
    several = SEVERAL_RANKS[4 if variant.gpus >= 4 else 2] if variant.strategy == "ddp" else 0.0
    alone = _of_a_window(variant) if member.plan == "window" else None
    if alone is not None:
        seconds: float | None = alone + several
    else:
        seconds = _of_a_real_one(variant) if member.plan == "window" else None
        seconds = seconds or BY_FORK.get((variant.workload, member.plan, variant.strategy))
    if seconds is None:
        seconds = BY_FORK.get((variant.workload, member.plan, "single"), UNKNOWN) + several
    if "compile" in variant.optimizations:
        seconds += COMPILED
    if "autotune" in variant.optimizations:
        by_search = AUTOTUNED.get((variant.workload, variant.precision), 0.0)
        seconds += by_search if variant.strategy != "dp" else AUTOTUNED_DP.get(variant.workload, by_search)
    return seconds + (0.0 if launcher == "fork" else FRESH[variant.strategy])


def _of_a_real_one(variant: Variant) -> float | None:
    """Return what a window takes on a loader where the number of GPUs or the precision makes it another launch."""
    kind = (variant.workload, variant.strategy)
    if variant.batch and kind in DIVIDED:
        return DIVIDED[kind]
    if variant.gpus >= 4 and kind in ON_FOUR:
        return ON_FOUR[kind]
    return IN_BF16.get(kind) if variant.precision == "bf16" else None


def _of_a_window(variant: Variant) -> float | None:
    """Return what a window of one process takes where loader, precision or batch make it another launch."""
    if variant.mode != "synthetic":
        return None
    kind = (variant.workload, variant.precision)
    return OF_BATCH.get((*kind, variant.batch or 0), SYNTHETIC.get(kind))
