"""Which variants are measured together, for each workload and kind of device: the questions that the suite asks.

What a group is and how it is measured stands in `perf.catalogue`; here is only what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perf.variants import Variant
from perf.workloads import MACHINE, WORKLOADS

GPU_COUNTS = (1, 2)
"""GPUs of the catalogue's variants: one, and the smallest number that has something to say to each other."""

CPU_RANKS = 2
"""Processes of DDP on the CPU."""

NODES = 2
"""Nodes of the catalogue's variants on several: the smallest number that has a network between them."""

SWEEP = (1, 2, 4, 8)
"""Loader workers a GPU of the sweep; 0 is no worker but the training process itself, and its own question."""

RUNGS: dict[str, dict[str, Any]] = {
    "tf32": {"precision": "tf32"},
    "fp16": {"precision": "fp16"},
    "bf16": {"precision": "bf16"},
    "channels_last": {"optimizations": ("channels_last",)},
    "fused": {"optimizations": ("fused",)},
    "compile": {"optimizations": ("compile",)},
    "cuda_graph": {"optimizations": ("cuda_graph",)},
    "autotune": {"optimizations": ("autotune",)},
}
"""The ladder: what each rung changes over one process in fp32 on data that lie on the device."""

EVERYTHING: dict[str, dict[str, Any]] = {
    # One of Adadelta's kind has no fused form; the graph is what a network bound by the host gains from.
    "mnist_cnn": {"precision": "bf16", "optimizations": ("channels_last", "cuda_graph")},
    "resnet50": {"precision": "bf16", "optimizations": ("channels_last", "fused", "compile", "autotune")},
    "resnet152": {"precision": "bf16", "optimizations": ("channels_last", "fused", "compile", "autotune")},
    "unet3d": {"precision": "bf16", "optimizations": ("fused", "compile", "autotune")},
}
"""All rungs together that help a network, as far as they go together."""

OVERLAP: dict[str, Any] = {"optimizations": ("non_blocking",)}
"""Copies that overlap need a loader that copies: the one rung that is climbed on the real loader."""


@dataclass(frozen=True)
class Declaration:
    """One group, without its name. The fields are those of `perf.catalogue.Group`; `members` are variants and plans."""

    question: str
    members: tuple[tuple[Variant, str], ...]
    not_in_smoke: tuple[Variant, ...] = ()
    judged: bool = True
    smoke_judged: bool = False
    once: bool = False
    profiles: tuple[str, ...] = ("smoke", "quick", "full")


class Maker:
    """Makes variants of one workload on one kind of device."""

    def __init__(self, workload: str, device: str) -> None:
        self.workload = workload
        self.device = device
        self.backend = "nccl" if device == "cuda" else "gloo"
        self.many = max(GPU_COUNTS) if device == "cuda" else CPU_RANKS

    def single(self, mode: str = "full", **rest: Any) -> Variant:
        """One process on one device."""
        return Variant(self.workload, "single", self.device, 1, mode=mode, **rest)

    def ddp(self, count: int, mode: str = "full", **rest: Any) -> Variant:
        """DistributedDataParallel."""
        return Variant(self.workload, "ddp", self.device, count, backend=self.backend, mode=mode, **rest)

    def dp(self, count: int, **rest: Any) -> Variant:
        """DataParallel."""
        return Variant(self.workload, "dp", self.device, count, **rest)


def declared(workload: str, device: str) -> Iterator[Declaration]:
    """Yield the groups of one workload on one kind of device, the most telling first; none where it is not for it."""
    if workload == MACHINE:
        yield from _machine(device)
        return
    if device not in WORKLOADS[workload].devices:
        return
    make = Maker(workload, device)
    if workload == "mnist_cnn":
        yield from _acceptance(make, ("smoke", "quick", "full"))
    elif workload.endswith("_224"):
        yield from _as_the_source_ran_it(make)
        return
    elif device == "cuda":
        yield from _acceptance(make, ("full",))
    else:
        yield _tiny(make)
    if device == "cuda":
        yield from _tuning(make)
    if workload == "mnist_cnn":
        yield from _choices(make)


def _machine(device: str) -> Iterator[Declaration]:
    """Yield what a machine can do by itself, whatever trains on it: of one rank, and between several."""
    one = Variant.machine("single", device, 1)
    several = Variant.machine(
        "ddp", device, Maker(MACHINE, device).many, "nccl" if device == "cuda" else "gloo"
    )
    # Two groups: one rank alone has all the cores for its threads.
    yield Declaration("rates", ((one, "rates"),), once=True)
    yield Declaration("links", ((several, "rates"),), once=True)


def _windows(*variants: Variant) -> tuple[tuple[Variant, str], ...]:
    return tuple((variant, "window") for variant in variants)


def _acceptance(make: Maker, profiles: tuple[str, ...]) -> Iterator[Declaration]:
    """Yield what a stack is accepted by."""
    full, synthetic, alone = make.single(), make.single("synthetic"), make.single("io")
    beyond_smoke = tuple(p for p in profiles if p != "smoke")
    # The loader alone tells what bounds the run; smoke judges the share of the other two.
    yield Declaration(
        "loader",
        _windows(full, synthetic, alone),
        not_in_smoke=(alone,),
        smoke_judged=True,
        profiles=profiles,
    )
    one, several = make.ddp(1, "synthetic"), make.ddp(make.many, "synthetic")
    # Smoke has time for one launch on several ranks; the group `ranks` has it, on the real loader.
    yield Declaration("ddp", _windows(synthetic, one, several), not_in_smoke=(several,), profiles=profiles)
    if make.device == "cuda":
        yield Declaration("dp", _windows(make.dp(make.many), make.ddp(make.many)), profiles=profiles)
    else:
        yield Declaration("ranks", _windows(make.ddp(make.many)), profiles=profiles)
    # One node beside two, in the same allocation: what the network adds. Skipped, with the reason, on one node.
    several_nodes = make.ddp(make.many, nodes=NODES)
    yield Declaration("nodes", _windows(make.ddp(make.many), several_nodes), judged=False, profiles=profiles)
    yield Declaration("epochs", ((full, "epochs"),), profiles=profiles)
    yield Declaration("samples", ((alone, "audit"),), judged=False, profiles=profiles)
    yield Declaration("samples_ddp", ((make.ddp(make.many, "io"), "audit"),), judged=False, profiles=profiles)
    yield Declaration("default", _windows(make.single(precision="default")), profiles=beyond_smoke)


def _as_the_source_ran_it(make: Maker) -> Iterator[Declaration]:
    """Yield a network on enlarged images: what bounds it, and its epochs, for the figures that a source published."""
    full, synthetic, alone = make.single(), make.single("synthetic"), make.single("io")
    yield Declaration("loader", _windows(full, synthetic, alone), profiles=("full",))
    yield Declaration("epochs", ((full, "epochs"),), profiles=("full",))


def _tiny(make: Maker) -> Declaration:
    """Return the code path of a large workload at a small size: one launch alone and one on several ranks."""
    return Declaration("tiny", _windows(make.single(), make.ddp(make.many)), judged=False)


def _tuning(make: Maker) -> Iterator[Declaration]:
    """Yield how fast it can be made: workers, loaders, and one optimization at a time."""
    full = ("full",)
    sweep = [make.single(workers=n) for n in SWEEP]
    yield Declaration("workers", _windows(*sweep), judged=False, profiles=full)
    alone = [make.single("io", loader=name) for name in ("native", "batched", "resident", "dali")]
    yield Declaration("loaders", _windows(*alone), judged=False, profiles=full)
    base = make.single("synthetic")
    rungs = [make.single("synthetic", **changes) for changes in RUNGS.values()]
    everything = EVERYTHING.get(make.workload)
    together = [make.single("synthetic", **everything)] if everything else []
    yield Declaration("ladder", _windows(base, *rungs, *together, *_uncompiled(make)), profiles=full)
    if everything:
        resident = make.single(loader="resident", **everything)
        one_worker = make.single(workers=1)
        yield Declaration(
            "tuned", _windows(one_worker, resident, *together, make.single(**everything)), profiles=full
        )
    yield Declaration("overlap", _windows(make.single(), make.single(**OVERLAP)), profiles=full)


def _uncompiled(make: Maker) -> Iterator[Variant]:
    """Yield all rungs together but for the compiler, which costs a launch most and is not on every stack."""
    everything = EVERYTHING.get(make.workload, {})
    if "compile" in everything.get("optimizations", ()):
        rest = tuple(name for name in everything["optimizations"] if name != "compile")
        yield make.single("synthetic", **{**everything, "optimizations": rest})


def _choices(make: Maker) -> Iterator[Declaration]:
    """Yield the optimizers and schedules that source 004's guide asks to try, at its batch of 128."""
    known = WORKLOADS[make.workload]
    optimizers = [make.single(batch=128, optimizer=name) for name in ("", *known.optimizers[1:])]
    yield Declaration("optimizers", _windows(*optimizers), judged=False, profiles=("full",))
    schedules = [make.single(batch=128, schedule=name) for name in ("", *known.schedules[1:])]
    yield Declaration("schedules", tuple((v, "epochs") for v in schedules), judged=False, profiles=("full",))
