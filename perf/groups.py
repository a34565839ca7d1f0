"""Which variants are measured together, for each workload and kind of device: the questions that the suite asks.

What a group is and how it is measured stands in `perf.catalogue`; here is only what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perf import groups_parallel as parallel
from perf import groups_studies as studies
from perf.declaration import Declaration, Maker, windows
from perf.variants import Variant
from perf.workloads import MACHINE, WORKLOADS

NODES = 2
"""Nodes of the catalogue's variants on several: the smallest number that has a network between them."""

SWEEP = (1, 2, 4, 8)
"""Loader workers a GPU of the sweep; 0 is no worker but the training process itself, and its own question."""

CORES: dict[str, tuple[tuple[int, int], ...]] = {
    # Workers and cores. Source 004 asks for 4, 8 and 10 cores and starts 4 workers each time; 1 on 1 and 8 on 8 beside
    # it tell what cores bring that somebody uses.
    "cuda": ((1, 1), (4, 4), (4, 8), (4, 10), (8, 8)),
    "cpu": ((1, 1), (1, 2)),
}
"""The sweep over cores: what a rank and its loader workers are tied to."""

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
    # Small images, so the host holds these up too: on an H200 the compiler gained nothing, and a graph 1.7 times.
    "resnet50": {"precision": "bf16", "optimizations": ("channels_last", "fused", "cuda_graph", "autotune")},
    "resnet152": {"precision": "bf16", "optimizations": ("channels_last", "fused", "cuda_graph", "autotune")},
    "unet3d": {"precision": "bf16", "optimizations": ("fused", "compile", "autotune")},
}
"""All rungs together that help a network, as far as they go together."""

MIXED: dict[str, Any] = {"precision": "bf16", "optimizations": ("channels_last",)}
"""How ResNet-50 at 224 is trained where cards are compared by its images a second: in the precision and the layout of
tensor cores. cuDNN searches for nothing here, so a launch is short."""

OVERLAP: dict[str, Any] = {"optimizations": ("non_blocking",)}
"""Copies that overlap need a loader that copies: the one rung that is climbed on the real loader."""


def declared(workload: str, device: str) -> Iterator[Declaration]:
    """Yield the groups of one workload on one kind of device, the most telling first; none where it is not for it."""
    if workload == MACHINE:
        yield from _machine(device)
        return
    make = Maker(workload, device)
    if workload == "unet3d_tiny":
        # How a batch learns does not hang on the device, so the small network tells it on GPUs too.
        yield from studies.solution(make)
    if device not in WORKLOADS[workload].devices:
        return
    if workload == "mnist_cnn":
        yield from _acceptance(make, ("smoke", "quick", "full"))
    elif workload.endswith("_224"):
        yield from _as_the_source_ran_it(make)
        if workload == "resnet152_224":
            yield from parallel.as_published(make)
        return
    elif device == "cuda":
        yield from _acceptance(make, ("full",))
    else:
        yield _tiny(make)
    if device == "cuda":
        yield from _tuning(make)
    if workload == "mnist_cnn":
        tied = [make.single(workers=workers, cores=cores) for workers, cores in CORES[device]]
        yield Declaration("cores", windows(*tied), judged=False, profiles=("full",), compared=False)
        yield from _choices(make)
    yield from _in_parallel(make)
    yield from studies.batches(make)


def _in_parallel(make: Maker) -> Iterator[Declaration]:
    """Yield what several devices do together, on networks for which the sources ask it."""
    on_gpu = make.device == "cuda"
    if make.workload == "unet3d":
        # As source 003 meant its scaling runs to be, whose flags were dropped. A step of 79 ms and not 193 also leaves
        # less of it to hide the all-reduce behind.
        make = Maker(make.workload, make.device, precision="bf16")
    yield from parallel.knobs(make)
    if make.workload in ("mnist_cnn", "resnet50", "unet3d"):
        yield from parallel.talk(make)
        yield from parallel.scaling(make)
    if make.workload == "mnist_cnn":
        yield from parallel.conventions(make)
    if on_gpu and make.workload in ("mnist_cnn", "resnet50", "resnet152"):
        yield from parallel.three_ways(make)
    if on_gpu and make.workload == "mnist_cnn":
        yield from parallel.as_published(make)


def _machine(device: str) -> Iterator[Declaration]:
    """Yield what a machine can do by itself, whatever trains on it: of one rank, and between several."""
    one = Variant.machine("single", device, 1)
    several = Variant.machine(
        "ddp", device, Maker(MACHINE, device).many, "nccl" if device == "cuda" else "gloo"
    )
    # Two groups: one rank alone has all the cores for its threads.
    yield Declaration("rates", ((one, "rates"),), once=True)
    yield Declaration("links", ((several, "rates"),), once=True)


def _acceptance(make: Maker, profiles: tuple[str, ...]) -> Iterator[Declaration]:
    """Yield what a stack is accepted by."""
    full, synthetic, alone = make.single(), make.single("synthetic"), make.single("io")
    beyond_smoke = tuple(p for p in profiles if p != "smoke")
    # The loader alone tells what bounds the run; smoke judges the share of the other two.
    yield Declaration(
        "loader",
        windows(full, synthetic, alone),
        not_in_smoke=(alone,),
        smoke_judged=True,
        profiles=profiles,
    )
    one, several = make.ddp(1, "synthetic"), make.ddp(make.many, "synthetic")
    # Smoke has time for one launch on several ranks; the group `ranks` has it, on the real loader.
    yield Declaration("ddp", windows(synthetic, one, several), not_in_smoke=(several,), profiles=profiles)
    if make.device == "cuda":
        # One process too: speed-up and efficiency are against the one of the same rounds.
        ways = windows(make.dp(make.many), make.ddp(make.many), full)
        yield Declaration("dp", ways, profiles=profiles)
    else:
        yield Declaration("ranks", windows(make.ddp(make.many)), profiles=profiles)
    # One node beside two, in the same allocation: what the network adds. Skipped, with the reason, on one node.
    several_nodes = make.ddp(make.many, nodes=NODES)
    yield Declaration("nodes", windows(make.ddp(make.many), several_nodes), judged=False, profiles=profiles)
    yield Declaration("epochs", ((full, "epochs"),), profiles=profiles)
    yield Declaration("samples", ((alone, "audit"),), judged=False, profiles=profiles)
    yield Declaration("samples_ddp", ((make.ddp(make.many, "io"), "audit"),), judged=False, profiles=profiles)
    yield Declaration("default", windows(make.single(precision="default")), profiles=beyond_smoke)


def _as_the_source_ran_it(make: Maker) -> Iterator[Declaration]:
    """Yield a network on enlarged images: what bounds it, and its epochs, for the figures that a source published."""
    full, synthetic, alone = make.single(), make.single("synthetic"), make.single("io")
    yield Declaration("loader", windows(full, synthetic, alone), profiles=("full",))
    yield Declaration("epochs", ((full, "epochs"),), profiles=("full",))
    if make.workload == "resnet50_224":
        yield Declaration("mixed", windows(synthetic, make.single("synthetic", **MIXED)), profiles=("full",))


def _tiny(make: Maker) -> Declaration:
    """Return the code path of a large workload at a small size: one launch alone and one on several ranks."""
    return Declaration("tiny", windows(make.single(), make.ddp(make.many)), judged=False)


def _tuning(make: Maker) -> Iterator[Declaration]:
    """Yield how fast it can be made: workers, loaders, and one optimization at a time."""
    full = ("full",)
    sweep = [make.single(workers=n) for n in SWEEP]
    yield Declaration("workers", windows(*sweep), judged=False, profiles=full)
    alone = [make.single("io", loader=name) for name in ("native", "batched", "resident", "dali")]
    yield Declaration("loaders", windows(*alone), judged=False, profiles=full)
    base = make.single("synthetic")
    rungs = [make.single("synthetic", **changes) for changes in RUNGS.values()]
    everything = EVERYTHING.get(make.workload)
    together = [make.single("synthetic", **everything)] if everything else []
    yield Declaration("ladder", windows(base, *rungs, *together, *_uncompiled(make)), profiles=full)
    if everything:
        resident = make.single(loader="resident", **everything)
        one_worker = make.single(workers=1)
        yield Declaration(
            "tuned", windows(one_worker, resident, *together, make.single(**everything)), profiles=full
        )
    yield Declaration("overlap", windows(make.single(), make.single(**OVERLAP)), profiles=full)


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
    yield Declaration("optimizers", windows(*optimizers), judged=False, profiles=("full",))
    schedules = [make.single(batch=128, schedule=name) for name in ("", *known.schedules[1:])]
    yield Declaration("schedules", tuple((v, "epochs") for v in schedules), judged=False, profiles=("full",))
