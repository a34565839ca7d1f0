"""Settings: put in force, then read back from the objects and from behaviour, never from the request."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from perf.contract import LaunchSpec
from perf.training.strategies import unwrap

TF32_ERROR = 1e-5
"""Relative error of a 256x256 float32 product above which its inputs were rounded: TF32's 10-bit mantissa gives
3e-4, float32 3e-7."""

BUCKET_BYTES = 25 * 2**20
"""DDP's default size of a bucket (`bucket_cap_mb`), since torch 1.0."""

FIRST_BUCKET_BYTES = 2**20
"""DDP's first bucket, smaller so that the first message leaves early."""

PRECISIONS = ("default", "fp32", "tf32", "fp16", "bf16")

ACTIVATIONS = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}
"""Type of the first layer's output in each precision; ``default`` may be anything."""

WRAPPERS = {"single": None, "dp": "DataParallel", "ddp": "DistributedDataParallel"}


class NotInForce(RuntimeError):
    """A setting was asked for and is not in force."""


class Unavailable(RuntimeError):
    """A setting was asked for that this stack or device does not have; the message is the reason."""


def apply_threads(threads: int) -> None:
    """Set torch's threads on this rank. torchrun sets OMP_NUM_THREADS for two ranks and not for one."""
    torch.set_num_threads(threads)


def apply_precision(precision: str) -> None:
    """Put a precision in force.

    ``default`` leaves torch's own settings alone, so that a changed default of a new stack is seen. ``fp32`` is
    float32 throughout, TF32 off; ``tf32`` has it on for products and convolutions. ``fp16`` and ``bf16`` are autocast
    (see `perf.training.steps`); what stays float32 there is as torch sets it.
    """
    if precision not in PRECISIONS:
        raise NotInForce(
            f"precision {precision!r} is not one that this worker knows: {', '.join(PRECISIONS)}"
        )
    if precision not in ("fp32", "tf32"):
        return
    matmul, conv = torch.backends.cuda.matmul, getattr(torch.backends.cudnn, "conv", None)
    if conv is not None and hasattr(matmul, "fp32_precision"):
        # torch 2.9 and later; reading the older switches after this raises an error there.
        matmul.fp32_precision = "ieee" if precision == "fp32" else "tf32"
        conv.fp32_precision = "ieee" if precision == "fp32" else "tf32"
    else:
        matmul.allow_tf32 = precision == "tf32"
        torch.backends.cudnn.allow_tf32 = precision == "tf32"


def product_errors(device: torch.device) -> dict[str, float]:
    """Return the relative errors of a matrix product and of a convolution in float32, against the host's in float64.

    An environment variable such as NVIDIA_TF32_OVERRIDE overrides torch's switches unseen; the error shows it.
    """
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(256, 256, generator=generator) for _ in range(2))
    # For less than 64 channels cuDNN (9.19, on an H200) takes a method without tensor cores, whatever is allowed.
    images = torch.randn(16, 64, 32, 32, generator=generator)
    weight = torch.randn(64, 64, 3, 3, generator=generator)
    convolve = torch.nn.functional.conv2d
    # Autotuning would search for a method, in 0.1 s of every launch on an H200.
    searches, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, False
    try:
        convolved = convolve(images.to(device), weight.to(device))
    finally:
        torch.backends.cudnn.benchmark = searches
    # Of one image: sixteen in float64 were most of what reading back took.
    exact = convolve(images[:1].double(), weight.double())
    product = a.to(device) @ b.to(device)
    return {
        "matmul": _relative(product, a.double() @ b.double()),
        "convolution": _relative(convolved[:1], exact),
    }


def _relative(got: torch.Tensor, exact: torch.Tensor) -> float:
    return float((got.cpu().double() - exact).norm() / exact.norm())


class ActivationWatch:
    """Notes the first layer's output at the first forward pass, then takes itself away: its dtype and memory format."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.dtype: Optional[str] = None
        self.channels_last: Optional[bool] = None
        leaf = next(m for m in unwrap(model).modules() if not list(m.children()))
        self._handle = leaf.register_forward_hook(self._note)

    def _note(self, module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> None:
        self._handle.remove()
        self.dtype = str(output.dtype).replace("torch.", "")
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}
        if output.dim() in formats and output.shape[1] > 1 and max(output.shape[2:]) > 1:
            self.channels_last = output.is_contiguous(memory_format=formats[output.dim()])


def read_back(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    activations: Optional[str],
    errors: dict[str, float],
) -> dict[str, Any]:
    """Return the settings that are in force on this rank."""
    # torch.compile wraps outermost; it is told apart, under ``compiled``.
    model = getattr(model, "_orig_mod", model)
    inner = unwrap(model)
    parameter = next(inner.parameters())
    group = optimizer.param_groups[0]
    effective: dict[str, Any] = {
        "strategy": type(model).__name__ if model is not inner else None,
        "device": str(parameter.device),
        "parameter_dtype": str(parameter.dtype).replace("torch.", ""),
        "activation_dtype": activations,
        "optimizer": type(optimizer).__name__,
        "optimizer_flags": {
            key: group[key] for key in ("lr", "fused", "foreach", "capturable") if key in group
        },
        "world_size": dist.get_world_size() if dist.is_initialized() else 1,
        "backend": dist.get_backend() if dist.is_initialized() else "none",
        "product_error": errors,
        "tf32": {name: error > TF32_ERROR for name, error in errors.items()},
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }
    if isinstance(model, DistributedDataParallel):
        effective["ddp"] = _ddp_facts(model)
    return effective


def _ddp_facts(model: DistributedDataParallel) -> dict[str, Any]:
    """Return DDP's own account of itself; buckets are rebuilt after the first step, so ask after training."""
    # torch has no public name for it; there since 1.8.
    logged = model._get_ddp_logging_data()  # noqa: SLF001
    rebuilt = str(logged.get("rebuilt_bucket_sizes") or "")
    sizes = rebuilt or str(logged.get("bucket_sizes") or "")
    return {
        "bucket_bytes": [int(size) for size in sizes.replace(",", " ").split()],
        "rebuilt": bool(rebuilt),
        "bucket_cap_bytes": logged.get("bucket_cap_bytes"),
        "gradient_as_bucket_view": model.gradient_as_bucket_view,
        "static_graph": model.static_graph,
        "broadcast_buffers": model.broadcast_buffers,
        "find_unused_parameters": model.find_unused_parameters,
    }


def not_in_force(spec: LaunchSpec, effective: dict[str, Any]) -> list[str]:
    """Return one sentence for each setting that the spec asks for and that is not in force."""
    wanted = {
        "strategy": WRAPPERS[spec.strategy],
        "world_size": spec.world_size,
        "backend": spec.backend,
        "threads": spec.threads,
        "loader.loader": spec.loader,
        "loader.batch_size": spec.batch_size * spec.devices_per_rank,
        "loader.workers": spec.workers * spec.devices_per_rank,
    }
    if spec.persistent:
        wanted["loader.persistent_workers"] = True
    if spec.prefetch is not None:
        wanted["loader.prefetch_factor"] = spec.prefetch
    if spec.pin_memory is not None or spec.loader == "native":
        # torch's own loader pins for a GPU unless the variant says otherwise (`perf.training.session`).
        wanted["loader.pin_memory"] = spec.device == "cuda" if spec.pin_memory is None else spec.pin_memory
    if "ddp" in effective:  # where the wrapper was dropped, that is what is said
        wanted.update(_wanted_of_ddp(spec))
    found = {name: _dig(effective, name) for name in wanted}
    problems = [f"{n} should be {wanted[n]}, is {found[n]}" for n in wanted if wanted[n] != found[n]]
    if not str(effective["device"]).startswith(spec.device):
        problems.append(f"parameters should be on {spec.device}, are on {effective['device']}")
    if spec.mode != "io":
        problems += _other_precision(spec, effective)
    problems += _unlike_buckets(spec, effective.get("ddp") or {})
    return problems


def _wanted_of_ddp(spec: LaunchSpec) -> dict[str, Any]:
    """Return the settings of DistributedDataParallel that a launch asks for; none where it is not in it."""
    if spec.strategy != "ddp":
        return {}
    cap = {} if spec.bucket_cap_mb is None else {"ddp.bucket_cap_bytes": spec.bucket_cap_mb * 1024**2}
    return {
        "ddp.gradient_as_bucket_view": "view" in spec.ddp_switches,
        "ddp.static_graph": "static" in spec.ddp_switches,
        "ddp.broadcast_buffers": "nobuffers" not in spec.ddp_switches,
        **cap,
    }


def _other_precision(spec: LaunchSpec, effective: dict[str, Any]) -> list[str]:
    """Say where the precision that was asked for is not the one that was computed in."""
    problems = []
    if spec.precision == "fp32":
        problems += [
            f"fp32 was asked for, but a float32 {name} has the relative error {effective['product_error'][name]:.1e} "
            f"of TF32; look for NVIDIA_TF32_OVERRIDE and TORCH_ALLOW_TF32_CUBLAS_OVERRIDE in the environment"
            for name, rounded in effective["tf32"].items()
            if rounded
        ]
    if spec.precision == "tf32":
        problems += [
            f"tf32 was asked for, but a float32 {name} is exact to {effective['product_error'][name]:.1e}; "
            f"look for NVIDIA_TF32_OVERRIDE=0 in the environment"
            for name, rounded in effective["tf32"].items()
            if not rounded
        ]
    wanted_type = ACTIVATIONS.get(spec.precision)
    if wanted_type and effective["activation_dtype"] != wanted_type:
        problems.append(f"activations should be {wanted_type}, are {effective['activation_dtype']}")
    return problems


def _unlike_buckets(spec: LaunchSpec, ddp: dict[str, Any]) -> list[str]:
    """Say where DDP's buckets can't be those of its defaults, which is what a variant without a size asks for."""
    # Before the first backward pass they are a guess: a loader alone never makes one.
    told = ddp.get("rebuilt") and spec.bucket_cap_mb is None
    sizes = (ddp.get("bucket_bytes") or []) if told else []
    whole = sum(sizes)
    # The first is closed at 1 MiB, each later one but the last at 25 MiB or more.
    most = 2 + whole // BUCKET_BYTES
    if len(sizes) > most:
        said = (
            f"DDP sends its gradients in {len(sizes)} buckets, at most {most} were expected for {whole} bytes"
        )
        return [f"{said}: each is a message of its own; look for who sets bucket_cap_mb"]
    # Half again the first bucket's size leaves parameters for a second one, whatever the order of gradients; except
    # where a last one is itself that large, which none of the workloads has.
    if len(sizes) == 1 and whole > 1.5 * FIRST_BUCKET_BYTES:
        said = f"DDP sends all its gradients in one bucket of {whole} bytes"
        return [f"{said}: nothing is sent before the backward pass is over; look for who sets bucket_cap_mb"]
    return []


def _dig(effective: dict[str, Any], path: str) -> Any:
    value: Any = effective
    for key in path.split("."):
        value = value[key]
    return value
