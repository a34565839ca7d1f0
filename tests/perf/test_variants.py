"""Ids of variants read aloud and can be read back; what can't be run has no id; cores are never promised twice."""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.contract import OPTIMIZATIONS
from perf.core_share import MOST_DEFAULT_WORKERS, share_of_cores
from perf.variants import (
    BACKENDS,
    DEVICES,
    LOADERS,
    LOADERS_WITH_WORKERS,
    MODES,
    PRECISIONS,
    STRATEGIES,
    Variant,
    VariantError,
)
from perf.workloads import WORKLOADS

FLAGS = [(), ("persistent",), ("prefetch4",), ("persistent", "prefetch12", "unpinned"), ("unpinned",)]

KNOBS = [(), ("bucket25",), ("view",), ("bucket100", "view", "static", "nobuffers"), ("nosync",)]

relaxed = settings(deadline=None, max_examples=100)


@st.composite
def variants(draw: st.DrawFn, *, default_only: bool = False) -> Variant:
    """Any variant that can be run; with `default_only` without a number of workers or threads of its own."""
    strategy = draw(st.sampled_from(STRATEGIES))
    device = "cuda" if strategy == "dp" else draw(st.sampled_from(sorted(DEVICES.values())))
    backends = ("gloo",) if device == "cpu" else BACKENDS
    number = st.none() if default_only else st.none() | st.integers(1, 64)
    workload = draw(st.sampled_from(sorted(WORKLOADS)))
    loader = draw(st.sampled_from(LOADERS))
    with_workers = loader in LOADERS_WITH_WORKERS
    optimizations = draw(st.sets(st.sampled_from(OPTIMIZATIONS)))
    return Variant(
        workload=workload,
        strategy=strategy,
        device=device,
        count=1 if strategy == "single" else draw(st.integers(1, 16)),
        backend=draw(st.sampled_from(backends)) if strategy == "ddp" else "none",
        precision=draw(st.sampled_from(PRECISIONS)),
        loader=loader,
        workers=draw(number | st.just(0)) if with_workers and not default_only else None,
        loader_flags=draw(st.sampled_from(FLAGS)) if with_workers else (),
        optimizations=tuple(name for name in OPTIMIZATIONS if name in optimizations),
        optimizer=draw(st.sampled_from(("", *WORKLOADS[workload].optimizers[1:]))),
        schedule=draw(st.sampled_from(("", *WORKLOADS[workload].schedules[1:]))),
        threads=draw(number),
        cores=draw(number),
        batch=draw(st.none() | st.integers(1, 4096)),
        mode=draw(st.sampled_from(MODES)),
        nodes=draw(st.integers(1, 8)) if strategy == "ddp" else 1,
        ddp_knobs=draw(st.sampled_from(KNOBS)) if strategy == "ddp" else (),
    )


@pytest.mark.parametrize(
    "knobs",
    [("view", "bucket25"), ("bucket0",), ("bucket",), ("bucket1", "bucket2"), ("view", "view"), ("fast",)],
)
def test_knobs_of_ddp_are_known_and_in_order(knobs):
    """One way to write them, so that a variant has one id."""
    with pytest.raises(VariantError, match="knobs of DDP"):
        Variant("mnist_cnn", "ddp", "cpu", 2, backend="gloo", ddp_knobs=knobs)


def test_only_ddp_has_knobs():
    """Alone there are no buckets."""
    with pytest.raises(VariantError, match="knobs of DDP"):
        Variant("mnist_cnn", "single", "cpu", 1, ddp_knobs=("view",))


def test_knobs_are_read_off_an_id():
    """The cap is a number, unset where none is named; the switches keep their order."""
    knobbed = Variant.parse("mnist_cnn-ddp-2gpu-nccl-bucket25.view-fp32-native")

    assert (25, ("view",)) == (knobbed.bucket_cap_mb, knobbed.ddp_switches)
    assert (None, ()) == (
        Variant.parse("mnist_cnn-ddp-2gpu-nccl-fp32-native").bucket_cap_mb,
        Variant.parse("mnist_cnn-ddp-2gpu-nccl-fp32-native").ddp_switches,
    )


# --- ids


@pytest.mark.parametrize(
    "text", ["machine-single-1cpu", "machine-single-1gpu", "machine-ddp-2cpu-gloo", "machine-ddp-4gpu-nccl"]
)
def test_a_machine_has_an_id_that_names_nothing_that_trains(text):
    """Its rates belong to no network, precision or loader."""
    variant = Variant.parse(text)

    assert text == variant.id
    assert ("machine", "default", "none") == (variant.workload, variant.precision, variant.loader)
    assert 0 == share_of_cores(variant, 8).workers


@pytest.mark.parametrize(
    "text",
    [
        "machine-dp-2gpu",
        "machine-single-2gpu",
        "machine-ddp-2gpu",
        "machine-ddp-02gpu-nccl",
        "machine-single-1gpu-nccl",
        "machine-ddp-2cpu-nccl",
        "machine-single-1gpu-fp32-native",
        "machine-single-1gpu-default-none",
    ],
)
def test_what_a_machine_can_not_be_has_no_id(text):
    """One process and DDP measure rates; DataParallel has none of its own, and nothing is trained."""
    with pytest.raises(VariantError):
        Variant.parse(text)


@pytest.mark.parametrize(
    "setting", [{"threads": 2}, {"batch": 8}, {"optimizations": ("fused",)}, {"workers": 1}]
)
def test_a_machine_has_no_settings_of_training(setting):
    """They would change nothing that is measured and stand in no id."""
    with pytest.raises(VariantError):
        dataclasses.replace(Variant.machine("single", "cpu", 1), **setting)


@relaxed
@given(variants())
def test_an_id_is_read_back(variant):
    """The id of a variant names that variant and no other."""
    assert variant == Variant.parse(variant.id)


@relaxed
@given(variants())
def test_an_id_holds_what_pytest_can_select(variant):
    """An id has no character that a shell, ``-k`` or a node id would have to quote."""
    assert re.fullmatch(r"[a-z0-9_.-]+", variant.id)


def test_ids_are_unique():
    """Variants that differ have ids that differ."""
    numbers = (None, 1, 2)
    found: dict[str, Variant] = {}
    for (
        strategy,
        device,
        count,
        backend,
        precision,
        workers,
        threads,
        batch,
        mode,
        nodes,
    ) in itertools.product(
        STRATEGIES,
        DEVICES.values(),
        (1, 2),
        ("none", *BACKENDS),
        PRECISIONS,
        numbers,
        numbers,
        numbers,
        MODES,
        (1, 2),
    ):
        try:
            variant = Variant(
                "mnist_cnn",
                strategy,
                device,
                count,
                backend,
                precision,
                "native",
                workers,
                threads,
                batch,
                mode,
                nodes,
            )
        except VariantError:
            continue
        assert variant == found.setdefault(variant.id, variant)
    # 5 precisions x 27 numbers x 3 modes = 405 of each of: single 2, dp 2, gloo 4 + 4, nccl 4.
    assert 405 * 16 == len(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "native8.persistent.prefetch4-adam",
            {"workers": 8, "loader_flags": ("persistent", "prefetch4"), "optimizer": "adam"},
        ),
        (
            "resident-channels_last.cuda_graph-cosine",
            {"loader": "resident", "optimizations": ("channels_last", "cuda_graph"), "schedule": "cosine"},
        ),
        (
            "native-compile-rmsprop-exponential-b128-io",
            {
                "optimizations": ("compile",),
                "optimizer": "rmsprop",
                "schedule": "exponential",
                "batch": 128,
                "mode": "io",
            },
        ),
    ],
)
def test_an_id_names_what_differs_from_the_workloads_own_way(text, expected):
    """Loader flags, optimizations, optimizer and schedule stand in the id where they are not the default."""
    variant = Variant("mnist_cnn", "single", "cpu", 1, **expected)

    assert f"mnist_cnn-single-1cpu-fp32-{text}" == variant.id
    assert variant == Variant.parse(variant.id)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mnist_cnn-single-1cpu-fp32-native", Variant("mnist_cnn", "single", "cpu", 1)),
        (
            "mnist_cnn-ddp-2gpu-nccl-fp32-native8",
            Variant("mnist_cnn", "ddp", "cuda", 2, backend="nccl", workers=8),
        ),
        (
            "mnist_cnn-ddp-4gpu-2node-gloo-default-native0-b128-t2-synthetic",
            Variant("mnist_cnn", "ddp", "cuda", 4, "gloo", "default", "native", 0, 2, 128, "synthetic", 2),
        ),
    ],
)
def test_the_form_of_an_id_is_fixed(text, expected):
    """References are filed under ids, so their form must not drift."""
    assert expected == Variant.parse(text)
    assert text == expected.id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mnist_cnn",
        "mnist_cnn-ddp-2gpu-nccl-fp32",
        "mnist_cnn-ddp-gpu-nccl-fp32-native",
        "mnist_cnn-ddp-2tpu-nccl-fp32-native",
        "mnist_cnn-fsdp-2gpu-nccl-fp32-native",
        "mnist_cnn-ddp-2gpu-mpi-fp32-native",
        "mnist_cnn-ddp-2gpu-nccl-fp64-native",
        "mnist_cnn-ddp-2gpu-nccl-fp32-nothing",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native8-x4",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native8-t2-b64",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native8\n",
        " mnist_cnn-single-1cpu-fp32-native",
        "mnist_cnn-single-1cpu-fp32-native extra",
        "Mnist_cnn-single-1cpu-fp32-native",
        "mnist_cnn-single-１cpu-fp32-native",
        "mnist_cnn-ddp-" + "9" * 5000 + "gpu-nccl-fp32-native",
        "../mnist_cnn-single-1cpu-fp32-native",
    ],
)
def test_a_bad_id_is_a_variant_error(text):
    """What is no id is refused with the form that was expected."""
    with pytest.raises(VariantError, match="is no variant id; expected WORKLOAD-STRATEGY"):
        Variant.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "mnist_cnn-ddp-02gpu-nccl-fp32-native",
        "mnist_cnn-ddp-2gpu-1node-nccl-fp32-native",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native08",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native-full",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native-b064",
    ],
)
def test_an_id_in_other_words_is_refused_with_the_right_one(text):
    """A variant has one name only, or it would be measured and referred to twice."""
    with pytest.raises(VariantError, match=r"is written 'mnist_cnn-ddp-2gpu-nccl-fp32-native"):
        Variant.parse(text)


@settings(deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"mnist_cnn-[a-z]+-[0-9]+(gpu|cpu)-[a-z0-9-]+", fullmatch=True))
def test_any_text_is_an_id_or_a_variant_error(text):
    """Nothing else than a VariantError comes of a hostile id."""
    try:
        variant = Variant.parse(text)
    except VariantError:
        return
    assert text == variant.id


# --- what cannot be run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workload": "alexnet"}, "workload 'alexnet' is not one of mnist_cnn"),
        ({"strategy": "fsdp"}, "strategy 'fsdp' is not one of single, dp, ddp"),
        ({"device": "tpu"}, "device 'tpu' is not one of"),
        ({"precision": "fp64"}, "precision 'fp64' is not one of"),
        ({"loader": "ffcv"}, "loader 'ffcv' is not one of"),
        ({"loader": "resident", "workers": 2}, "the loader resident has no workers"),
        ({"loader": "resident", "loader_flags": ("persistent",)}, "the loader resident has no workers"),
        ({"loader_flags": ("unpinned", "persistent")}, "loader flags 'unpinned.persistent' must be some of"),
        ({"loader_flags": ("prefetch0",)}, "loader flags 'prefetch0' must be some of"),
        ({"optimizations": ("compile", "fused")}, "optimizations 'compile.fused' must be some of"),
        ({"optimizations": ("fast",)}, "optimizations 'fast' must be some of"),
        ({"optimizer": "adadelta"}, "optimizer 'adadelta' is not one of , adam, rmsprop"),
        ({"schedule": "linear"}, "schedule 'linear' is not one of , exponential, cosine"),
        ({"mode": "half"}, "mode 'half' is not one of"),
        ({"backend": "mpi"}, "backend 'mpi' is not one of gloo, nccl"),
        ({"backend": "none"}, r"backend 'none' is not one of gloo, nccl \(strategy ddp\)"),
        ({"strategy": "single", "count": 1}, r"backend 'nccl' is not one of none \(strategy single\)"),
        ({"strategy": "single", "backend": "none"}, "single on 1 nodes with 2 devices each is not possible"),
        ({"strategy": "single", "backend": "none", "count": 1, "nodes": 2}, "single on 2 nodes"),
        ({"count": 0}, "ddp on 1 nodes with 0 devices each is not possible"),
        ({"nodes": 0}, "ddp on 0 nodes"),
        ({"nodes": -1}, "ddp on -1 nodes"),
        ({"strategy": "dp", "backend": "none", "device": "cpu"}, "DataParallel is for the GPUs of one node"),
        ({"strategy": "dp", "backend": "none", "nodes": 2}, "DataParallel is for the GPUs of one node"),
        ({"device": "cpu"}, "NCCL is for GPUs"),
        ({"workers": -1}, "workers must be at least 0"),
        ({"threads": 0}, "threads, batch and cores at least 1"),
        ({"batch": 0}, "threads, batch and cores at least 1"),
        ({"cores": 0}, "threads, batch and cores at least 1"),
    ],
)
def test_an_impossible_combination_is_a_variant_error(changes, message):
    """A variant that could not be run as it is named can't be made, and the error says why."""
    possible = Variant("mnist_cnn", "ddp", "cuda", 2, backend="nccl")

    with pytest.raises(VariantError, match=message):
        dataclasses.replace(possible, **changes)


@pytest.mark.parametrize(
    "text",
    [
        "mnist_cnn-ddp-2gpu-0node-nccl-fp32-native",
        "mnist_cnn-ddp-0gpu-nccl-fp32-native",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native-b0",
        "mnist_cnn-ddp-2gpu-nccl-fp32-native-t0",
        "mnist_cnn-ddp-2cpu-nccl-fp32-native",
        "mnist_cnn-single-2gpu-fp32-native",
        "mnist_cnn-ddp-2gpu-fp32-native",
        "alexnet-single-1gpu-fp32-native",
    ],
)
def test_an_id_of_an_impossible_combination_is_a_variant_error(text):
    """An id that is well formed and names nothing that can be run is refused."""
    with pytest.raises(VariantError):
        Variant.parse(text)


def test_a_variant_knows_its_sizes():
    """Ranks, devices, GPUs and batch follow from strategy, count and workload."""
    dp, ddp = (
        Variant("mnist_cnn", "dp", "cuda", 4),
        Variant("mnist_cnn", "ddp", "cpu", 2, backend="gloo", batch=8),
    )

    assert (1, 4, 4, 64) == (dp.ranks_per_node, dp.devices_per_node, dp.gpus, dp.batch_size)
    assert (2, 2, 0, 8) == (ddp.ranks_per_node, ddp.devices_per_node, ddp.gpus, ddp.batch_size)


# --- cores


def used(variant: Variant, share) -> int:
    return share.threads * variant.ranks_per_node + share.workers * variant.devices_per_node


@relaxed
@given(variants(default_only=True), st.integers(1, 256), st.booleans(), st.none() | st.integers(1, 16))
def test_a_default_variant_never_takes_more_than_the_cores(variant, cores, one_thread, devices):
    """Threads and loader workers fit into the cores, unless a node has fewer cores than devices to feed."""
    share = share_of_cores(variant, cores, devices=devices, one_thread=one_thread)
    fits = used(variant, share) <= cores

    assert fits is not share.oversubscribed
    assert fits or cores < variant.devices_per_node
    assert share.threads >= 1
    assert 0 <= share.workers <= MOST_DEFAULT_WORKERS
    assert 1 == share.threads or not one_thread


@relaxed
@given(variants(default_only=True), st.integers(1, 256))
def test_what_a_rank_is_promised_is_what_it_uses_at_most(variant, cores):
    """A rank's cores hold its threads and the workers of its devices; all ranks' cores are the node's at most."""
    share = share_of_cores(variant, cores)
    devices_per_rank = variant.devices_per_node // variant.ranks_per_node

    if cores >= variant.devices_per_node:
        assert share.threads + share.workers * devices_per_rank <= share.cores
        assert share.cores * variant.ranks_per_node <= cores


@relaxed
@given(variants(), st.integers(1, 256))
def test_what_a_variant_names_is_taken(variant, cores):
    """An explicit number is never cut; it is flagged where the sum exceeds the cores."""
    share = share_of_cores(variant, cores)

    assert variant.workers in {None, share.workers}
    assert variant.threads in {None, share.threads}
    assert (
        variant.cores is None
        or variant.cores * variant.devices_per_node == share.cores * variant.ranks_per_node
    )
    there = cores if variant.cores is None else variant.cores * variant.devices_per_node
    assert share.oversubscribed is (used(variant, share) > there)


@relaxed
@given(st.integers(1, 16), st.integers(1, 256))
def test_members_of_a_group_are_fed_alike(count, cores):
    """Divided by the largest member's devices, one rank gets what each of many gets."""
    one = share_of_cores(Variant("mnist_cnn", "single", "cpu", 1), cores, devices=count)
    many = share_of_cores(Variant("mnist_cnn", "ddp", "cpu", count, backend="gloo"), cores)

    assert (many.workers, many.threads, many.cores) == (one.workers, one.threads, one.cores)


@pytest.mark.parametrize(
    ("cores", "one_thread", "expected"),
    [
        (1, False, (0, 1)),
        (2, False, (1, 1)),
        (2, True, (1, 1)),
        (16, False, (8, 8)),
        (64, False, (8, 56)),
        (64, True, (8, 1)),
    ],
)
def test_half_of_the_cores_are_workers_up_to_eight(cores, one_thread, expected):
    """The tutorials stop at 8 workers a GPU; what is left is threads."""
    share = share_of_cores(Variant("mnist_cnn", "single", "cpu", 1), cores, one_thread=one_thread)

    assert expected == (share.workers, share.threads)
