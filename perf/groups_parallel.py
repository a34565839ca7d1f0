"""Groups about training in parallel: DDP's knobs and talk, DataParallel, conventions of the batch, scaling."""

from __future__ import annotations

from collections.abc import Iterator

from perf.declaration import Declaration, Maker, windows
from perf.variants import Variant
from perf.workloads import WORKLOADS

WORLD_SIZES = (1, 2, 4, 8)
"""Devices of the scaling curves: those of one node of today's machines. What a machine lacks is skipped."""

WAYS = ("dp", *(f"dp{count}" for count in WORLD_SIZES if count > 2))
"""Groups that hold the three ways against each other, on so many GPUs (``dp``: two)."""

KNOBS: dict[str, tuple[tuple[str, ...], ...]] = {
    # 25 is what torch calls the default; 100 what the SC22 tutorial tunes to.
    "mnist_cnn": (("bucket1",), ("bucket25",), ("view",), ("static",)),
    "resnet50": (("bucket25",), ("view",), ("static",), ("nobuffers",)),
    # Batch normalization has buffers, which DDP broadcasts in each step unless it is told not to.
    "resnet50_tiny": (("bucket1",), ("nobuffers",)),
    "unet3d": (("bucket25",), ("bucket100",), ("view",), ("static",), ("view", "nobuffers")),
}
"""DDP's knobs, one set a rung, for networks that each has something to say about."""

SEARCHED = ("mnist_cnn", "resnet50")
"""Networks whose DataParallel is launched with cuDNN's autotuning too. `resnet152` says what `resnet50` does, 2.8 times
as long a step for 3.4, in launches of 77 s (docs/measurements/2026-11-29-h200-x4)."""

DIVIDED = 2
"""Ranks of the two conventions of the global batch: with two, a rank's batch is halved in one of them."""


def knobs(make: Maker) -> Iterator[Declaration]:
    """Yield DDP at its defaults beside one knob at a time, on data that lie on the device."""
    if make.workload not in KNOBS:
        return
    base = make.ddp(make.many, "synthetic")
    turned = [make.ddp(make.many, "synthetic", ddp_knobs=knob) for knob in KNOBS[make.workload]]
    # Smoke counts all-reduces with a cap and without.
    shown = [v for v in turned if make.workload == "mnist_cnn" and v.ddp_knobs == ("bucket25",)]
    yield Declaration(
        "knobs",
        windows(base, *turned),
        not_in_smoke=tuple(v for v in turned if v not in shown),
        profiles=("smoke", "full") if shown and make.device == "cpu" else ("full",),
        compared=False,
    )


def talk(make: Maker) -> Iterator[Declaration]:
    """Yield DDP beside DDP that says nothing (no_sync): the difference is what its communication costs."""
    counts = [count for count in WORLD_SIZES if count > 1 and (make.device == "cuda" or count <= make.many)]
    for count in counts:
        sides = [make.ddp(count, "synthetic", ddp_knobs=k) for k in ((), ("nosync",))]
        name = "talk" if count == make.many else f"talk{count}"
        accepted = count == make.many and make.workload == "mnist_cnn"
        yield Declaration(
            name, windows(*sides), profiles=("quick", "full") if accepted else ("full",), compared=False
        )


def conventions(make: Maker) -> Iterator[Declaration]:
    """Yield the two ways to read a batch size under DDP: of a rank, or of all ranks, which share it."""
    batch = WORKLOADS[make.workload].batch_size
    several = make.ddp(DIVIDED), make.ddp(DIVIDED, batch=batch // DIVIDED)
    yield Declaration(
        "conventions", windows(make.single(), *several), judged=False, profiles=("full",), compared=False
    )
    audits = make.ddp(DIVIDED, "io", batch=batch // DIVIDED)
    yield Declaration(
        "samples_divided", ((audits, "audit"),), judged=False, profiles=("quick", "full"), compared=False
    )


def three_ways(make: Maker) -> Iterator[Declaration]:
    """Yield what the group ``dp`` leaves open: autotuning under DataParallel, whole epochs, and more GPUs."""
    ways = (make.single(), make.dp(make.many), make.ddp(make.many))
    autotuned = make.dp(make.many, optimizations=("autotune",))
    if make.workload in SEARCHED:
        # cuDNN's autotuning alone between the two. It fails with every torch, and is no question of a quick look.
        yield Declaration("autotuned_dp", windows(ways[1], autotuned), profiles=("full",), compared=False)
    yield Declaration(
        "ways_epochs",
        tuple((way, "epochs") for way in ways),
        judged=False,
        profiles=("full",),
        compared=False,
    )
    for count in WORLD_SIZES:
        if count > make.many:
            sides = windows(make.dp(count), make.ddp(count), ways[0])
            yield Declaration(f"dp{count}", sides, profiles=("full",), compared=False)


def as_published(make: Maker) -> Iterator[Declaration]:
    """Yield the three ways as two sources launched them: unequal workers, and batches that are not the same."""
    ways: tuple[Variant, ...]
    if make.workload == "mnist_cnn":
        # Source 004: a batch of 128 and 4 workers, whichever number of GPUs shares them.
        ways = (make.single(batch=128, workers=4), make.dp(2, workers=2))
    else:
        # Source 002: a batch of 64, split by DataParallel with 2 workers, of each rank with 4 by DDP.
        ways = (make.single(workers=4), make.dp(2, workers=1, batch=32), make.ddp(2, workers=4))
    yield Declaration("published", windows(*ways), judged=False, profiles=("full",), compared=False)


def scaling(make: Maker) -> Iterator[Declaration]:
    """Yield the scaling curves: weak (as many samples a device) and strong (as many in all)."""
    batch = WORKLOADS[make.workload].batch_size
    for mode, name in (("synthetic", "weak"), ("full", "weak_real"), ("io", "weak_data")):
        curve = [make.single(mode) if n == 1 else make.ddp(n, mode) for n in WORLD_SIZES]
        yield Declaration(name, windows(*curve), judged=mode != "io", profiles=("full",), compared=False)
    for mode, name in (("synthetic", "strong"), ("full", "strong_real")):
        divided = [make.ddp(n, mode, batch=batch // n) for n in WORLD_SIZES if n > 1]
        yield Declaration(name, windows(make.single(mode), *divided), profiles=("full",), compared=False)
