"""Settings are put in force, and read back from the objects and from behaviour."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from perf.contract import LaunchSpec
from perf.training.loaders import LoaderPlan, describe, native_loader
from perf.training.settings import (
    TF32_ERROR,
    ActivationWatch,
    NotInForce,
    apply_precision,
    apply_threads,
    not_in_force,
    product_errors,
    read_back,
)
from perf.training.strategies import wrap
from tests.perf.training.helpers import TinyWorkload, make_spec, separable

ROOT = Path(__file__).parents[3]
CPU = torch.device("cpu")

TF32_BITS, BF16_BITS = 13, 16
"""Bits of a float32 mantissa (23) that TF32 (10) and bfloat16 (7) drop."""


def truncate(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """A float32 tensor without the last bits of its mantissas."""
    return (tensor.view(torch.int32) & -(1 << bits)).view(torch.float32)


class Rounded(TorchDispatchMode):
    """Does to float32 products what TF32 does: their inputs lose mantissa bits, unseen by torch's switches."""

    def __init__(self, bits: int, operator: Any) -> None:
        super().__init__()
        self.bits, self.operator = bits, operator

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket is self.operator:
            args = [
                truncate(arg, self.bits)
                if isinstance(arg, torch.Tensor) and arg.dtype == torch.float32
                else arg
                for arg in args
            ]
        return func(*args, **(kwargs or {}))


# --- precision


def test_float32_products_are_below_the_threshold():
    """On the CPU, which has no TF32, both errors are those of float32: a tenth of the threshold at most."""
    errors = product_errors(CPU)

    assert {"matmul", "convolution"} == set(errors)
    assert all(0 < error < TF32_ERROR / 10 for error in errors.values())


@pytest.mark.parametrize("autotuned", [True, False])
def test_the_products_are_made_without_a_search_and_leave_it_as_it_was(monkeypatch, autotuned):
    """cuDNN would try methods for a convolution that nothing else needs; what was asked for stays in force."""
    seen = []
    plain = torch.nn.functional.conv2d
    monkeypatch.setattr(
        torch.nn.functional,
        "conv2d",
        lambda *a: seen.append((a[0].dtype, torch.backends.cudnn.benchmark)) or plain(*a),
    )
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", autotuned)
    product_errors(CPU)

    # That in float64 is the host's own, and cuDNN has no part in it.
    assert [(torch.float32, False), (torch.float64, autotuned)] == seen
    assert autotuned is torch.backends.cudnn.benchmark


@pytest.mark.parametrize("bits", [TF32_BITS, BF16_BITS], ids=["tf32", "bf16"])
@pytest.mark.parametrize(
    ("operator", "found", "other"),
    [(torch.ops.aten.mm, "matmul", "convolution"), (torch.ops.aten.convolution, "convolution", "matmul")],
    ids=["matmul", "convolution"],
)
def test_rounded_inputs_are_seen_by_behaviour(bits, operator, found, other):
    """Inputs with fewer mantissa bits give an error of ten times the threshold, and only where they were rounded."""
    with Rounded(bits, operator):
        errors = product_errors(CPU)

    assert errors[found] > 10 * TF32_ERROR
    assert errors[other] < TF32_ERROR / 10


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31), st.sampled_from([64, 256, 1024]))
def test_the_threshold_tells_both_apart_for_any_matrix(seed, size):
    """Whatever the numbers and the sizes, TF32 lies above the threshold and float32 below."""
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(32, size, generator=generator), torch.randn(size, 32, generator=generator)
    exact = a.double() @ b.double()

    def error(got: torch.Tensor) -> float:
        return float((got.double() - exact).norm() / exact.norm())

    assert error(a @ b) < TF32_ERROR < error(truncate(a, TF32_BITS) @ truncate(b, TF32_BITS))


SWITCHES = """
import json, torch

def newer():
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    found = {}
    for name, part in [("torch", torch.backends), ("matmul", matmul), ("cudnn", cudnn),
                       ("conv", getattr(cudnn, "conv", None)), ("rnn", getattr(cudnn, "rnn", None)),
                       ("mkldnn", torch.backends.mkldnn),
                       ("mkldnn.matmul", getattr(torch.backends.mkldnn, "matmul", None)),
                       ("mkldnn.conv", getattr(torch.backends.mkldnn, "conv", None))]:
        found[name] = getattr(part, "fp32_precision", None)
    return found

def older():
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    names = ["allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"]
    found = {name: str(getattr(matmul, name)) for name in names}
    for name in ["allow_tf32", "benchmark", "deterministic", "enabled"]:
        found[f"cudnn.{name}"] = getattr(cudnn, name)
    found["float32_matmul_precision"] = torch.get_float32_matmul_precision()
    found["deterministic"] = torch.are_deterministic_algorithms_enabled()
    found["default_dtype"] = str(torch.get_default_dtype())
    found["autocast"] = torch.is_autocast_enabled()
    found["grad"] = torch.is_grad_enabled()
    found["threads"] = torch.get_num_threads()
    return found

from perf.training.settings import apply_precision
before = newer(), older()
apply_precision("default")
after = newer(), older()
apply_precision("fp32")
print(json.dumps({"before": before, "after": after, "fp32": newer()}))
"""


def test_default_leaves_every_switch_alone_and_fp32_turns_tf32_off():
    """In a fresh process nothing that torch can be asked for differs after ``default``; ``fp32`` says ieee to CUDA."""
    done = subprocess.run(
        [sys.executable, "-c", SWITCHES], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)

    assert found["before"] == found["after"]
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        assert ("ieee", "ieee") == (found["fp32"]["matmul"], found["fp32"]["conv"])


def test_fp32_through_torchs_newer_switches(monkeypatch):
    """Where both products have a precision of their own, those are set and the older switches are not touched."""
    matmul, conv = SimpleNamespace(fp32_precision="tf32"), SimpleNamespace(fp32_precision="tf32")
    monkeypatch.setattr(torch.backends.cuda, "matmul", matmul)
    monkeypatch.setattr(torch.backends, "cudnn", SimpleNamespace(conv=conv))
    apply_precision("fp32")

    assert {"fp32_precision": "ieee"} == vars(matmul) == vars(conv)
    assert {"conv"} == set(vars(torch.backends.cudnn))


def test_fp32_through_torchs_older_switches(monkeypatch):
    """Before torch 2.9 TF32 is allowed or not, apart for products and convolutions."""
    monkeypatch.setattr(torch.backends.cuda, "matmul", SimpleNamespace(allow_tf32=True))
    monkeypatch.setattr(torch.backends, "cudnn", SimpleNamespace(allow_tf32=True))
    apply_precision("fp32")

    assert {"allow_tf32": False} == vars(torch.backends.cuda.matmul) == vars(torch.backends.cudnn)


@pytest.mark.parametrize("precision", ["fp64", "", "FP32"])
def test_an_unknown_precision_is_not_in_force(precision):
    """A setting that nobody knows is an error, not the default."""
    with pytest.raises(
        NotInForce, match=f"precision '{precision}' is not one that this worker knows: default, fp32, tf32"
    ):
        apply_precision(precision)


def test_threads_are_set():
    """The number is torch's afterwards."""
    apply_threads(2)

    assert 2 == torch.get_num_threads()


# --- activations


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activations_are_watched_once(dtype):
    """The first layer's output of the first forward pass is noted; later passes cost nothing."""
    model = TinyWorkload().build_model().to(dtype)
    watch = ActivationWatch(model)
    assert watch.dtype is None
    model(torch.zeros(2, 4, dtype=dtype))
    model.float()(torch.zeros(2, 4))

    assert str(dtype) == f"torch.{watch.dtype}"
    assert not any(module._forward_hooks for module in model.modules())


def test_autocast_is_seen_in_the_activations():
    """Parameters stay float32 under autocast; the activations tell."""
    model = TinyWorkload().build_model()
    watch = ActivationWatch(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(torch.zeros(2, 4))

    assert "bfloat16" == watch.dtype


# --- reading back


def run(
    spec: LaunchSpec, identity, *, dtype=torch.float32, mode=None, workers=None, threads=1
) -> dict[str, Any]:
    """One forward pass of what a spec asks for, with something planted; its settings as a session reads them back."""
    torch.set_num_threads(threads)
    plan = LoaderPlan(
        spec.batch_size,
        spec.workers if workers is None else workers,
        0,
        1,
        distributed=False,
        pin_memory=False,
        seed=1,
    )
    model = wrap(TinyWorkload().build_model().to(dtype), spec.strategy, identity)
    with mode or torch.enable_grad():
        errors = product_errors(CPU)
    watch = ActivationWatch(model)
    model(torch.zeros(2, 4, dtype=dtype))
    effective = read_back(model, TinyWorkload().make_optimizer(model), watch.dtype, errors)
    effective["threads"] = torch.get_num_threads()
    effective["loader"] = describe(native_loader(separable(44, 1), plan))
    return effective


@pytest.fixture
def spec(tmp_path) -> LaunchSpec:
    return make_spec(tmp_path)


def test_settings_in_force_have_no_problem(spec, cpu):
    """What was asked for and is there is not mentioned."""
    effective = run(spec, cpu)

    assert [] == not_in_force(spec, effective)
    assert effective == json.loads(json.dumps(effective, allow_nan=False))


def test_settings_are_read_from_the_objects(spec, cpu):
    """Class and flags of the optimizer, dtype and device of parameters, and what the loader is."""
    effective = run(spec, cpu)

    assert ("SGD", 0.1) == (effective["optimizer"], effective["optimizer_flags"]["lr"])
    assert {"lr", "fused", "foreach"} <= set(effective["optimizer_flags"])
    assert (None, "cpu", "float32", "float32") == tuple(
        effective[key] for key in ("strategy", "device", "parameter_dtype", "activation_dtype")
    )
    assert (1, "none") == (effective["world_size"], effective["backend"])
    assert ("DataLoader", 8, 0, False, None, "RandomSampler") == tuple(
        effective["loader"][key]
        for key in ("class", "batch_size", "workers", "pin_memory", "prefetch_factor", "sampler")
    )
    assert {"matmul": False, "convolution": False} == effective["tf32"]


def test_ddp_settings_are_read_from_ddp(spec, cpu, process_group):
    """Wrapper, backend, world size and DDP's own account of its buckets."""
    ddp = dataclasses.replace(spec, strategy="ddp", backend="gloo")
    effective = run(ddp, cpu)

    assert ("DistributedDataParallel", 1, "gloo") == tuple(
        effective[key] for key in ("strategy", "world_size", "backend")
    )
    assert 4 * TinyWorkload.PARAMETERS == sum(effective["ddp"]["bucket_bytes"])
    assert effective["ddp"]["bucket_cap_bytes"] > 0
    assert effective["ddp"]["find_unused_parameters"] is False
    assert [] == not_in_force(ddp, effective)


PLANTED = {
    "wrapper": ({"strategy": "ddp"}, {}, ["strategy should be DistributedDataParallel, is None"]),
    "backend": ({"backend": "gloo"}, {}, ["backend should be gloo, is none"]),
    "world size": ({"ranks_per_node": 2}, {}, ["world_size should be 2, is 1"]),
    "threads": ({}, {"threads": 2}, ["threads should be 1, is 2"]),
    "workers": ({}, {"workers": 1}, ["loader.workers should be 0, is 1"]),
    "batch": ({"batch_size": 16}, {}, ["loader.batch_size should be 16, is 8"]),
    "device": ({"device": "cuda", "pin_memory": False}, {}, ["parameters should be on cuda, are on cpu"]),
    "dtype": ({}, {"dtype": torch.bfloat16}, ["activations should be float32, are bfloat16"]),
    "tf32": (
        {},
        {"mode": Rounded(TF32_BITS, torch.ops.aten.mm)},
        ["fp32 was asked for, but a float32 matmul has the relative error"],
    ),
}


@pytest.mark.parametrize(("asked", "planted", "expected"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_mismatch_is_found(spec, cpu, asked, planted, expected):
    """Each setting that is not as the spec asks is one sentence with what was expected and what was found."""
    effective = run(spec, cpu, **planted)
    problems = not_in_force(dataclasses.replace(spec, **asked), effective)

    assert len(expected) == len(problems)
    for sentence, problem in zip(expected, problems, strict=True):
        assert problem.startswith(sentence)


def test_several_mismatches_are_all_named(spec, cpu):
    """One launch tells everything that is wrong with it."""
    effective = run(spec, cpu, threads=2, workers=1)

    assert 2 == len(not_in_force(spec, effective))


def test_rounding_is_named_with_the_variables_that_can_cause_it(spec, cpu):
    """The sentence holds the size of the error and what to look for."""
    (problem,) = not_in_force(spec, run(spec, cpu, mode=Rounded(TF32_BITS, torch.ops.aten.convolution)))

    assert "convolution has the relative error" in problem
    assert "NVIDIA_TF32_OVERRIDE" in problem


@pytest.mark.parametrize("changes", [{"precision": "default"}, {"mode": "io"}])
def test_precision_is_held_against_fp32_only_where_it_counts(spec, cpu, changes):
    """``default`` may round, and a loader alone computes nothing."""
    effective = run(spec, cpu, dtype=torch.bfloat16, mode=Rounded(TF32_BITS, torch.ops.aten.mm))

    assert [] == not_in_force(dataclasses.replace(spec, **changes), effective)


def test_data_parallel_has_the_loaders_of_all_its_devices(spec, cpu):
    """Batch and workers are a device's: one rank over four GPUs loads four times as much."""
    dp = dataclasses.replace(spec, strategy="dp", gpus=4, batch_size=2, workers=0)
    effective = {**run(spec, cpu), "strategy": "DataParallel"}

    assert [] == not_in_force(dp, effective)
    assert 1 == len(not_in_force(dataclasses.replace(dp, workers=2), effective))


MIB = 2**20


@pytest.mark.parametrize(
    ("sizes", "rebuilt", "said"),
    [
        ([4724264, 75264], True, ""),
        ([2 * MIB, 25 * MIB, 26 * MIB, 20 * MIB], True, ""),
        ([MIB], True, ""),
        ([4799528], False, ""),
        ([], True, ""),
        (
            [600_000] * 8,
            True,
            "DDP sends its gradients in 8 buckets, at most 2 were expected for 4800000 bytes",
        ),
        ([4799528], True, "DDP sends all its gradients in one bucket of 4799528 bytes"),
    ],
)
def test_buckets_that_can_t_be_ddps_own_are_no_setting_of_a_variant(spec, cpu, sizes, rebuilt, said):
    """More messages than its sizes give, or a single one; before the first backward pass nobody can tell."""
    defaults = {
        "gradient_as_bucket_view": False,
        "static_graph": False,
        "broadcast_buffers": True,
        "bucket_cap_bytes": MIB,
    }
    ddp = {**defaults, "bucket_bytes": sizes, "rebuilt": rebuilt}
    effective = {**run(spec, cpu), "ddp": ddp}
    problems = not_in_force(spec, effective)

    assert [bool(said)] == [bool(problems)]
    assert all(said in problem for problem in problems)
    # A variant that names a size gets what it asks for, and is held to that.
    sized = dataclasses.replace(spec, bucket_cap_mb=1)
    assert [] == [problem for problem in not_in_force(sized, effective) if "DDP sends" in problem]


def test_batches_for_a_gpu_are_pinned_unless_the_variant_says_otherwise(spec, cpu):
    """torch's own loader pins for a GPU; one that does not is not what was asked for."""
    effective = {**run(spec, cpu), "device": "cuda:0"}
    on_gpu = dataclasses.replace(spec, device="cuda")

    assert ["loader.pin_memory should be True, is False"] == not_in_force(on_gpu, effective)
    assert [] == not_in_force(dataclasses.replace(on_gpu, pin_memory=False), effective)
