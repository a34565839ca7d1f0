"""Torch's own settings as this stack has them before anybody changes one, and the variables that matter to it.

Two stacks are held against each other by these before anything is launched: a default that changed explains more
slow stacks than a kernel does.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any, Callable

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

VARIABLES = (
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "FI_",
    "GLOO_",
    "GOMP_",
    "HIP_",
    "HSA_",
    "KMP_",
    "MALLOC_",
    "MIOPEN_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
    "PYTORCH_",
    "RCCL_",
    "ROCR_",
    "TORCH",
    "UCX_",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)
"""How the names of variables begin that change how torch, its libraries, its threads or its memory behave."""

LONGEST = 400
"""Characters of a variable that are kept: a search path of a module system runs to thousands."""


def given() -> dict[str, str]:
    """Return the variables that this process was given: importing torch sets some of its own."""
    try:
        with open("/proc/self/environ", "rb") as file:
            text = file.read().decode(errors="backslashreplace")
    except OSError:
        return dict(os.environ)
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that matter, shortened."""
    return {name: environ[name][:LONGEST] for name in sorted(environ) if name.startswith(VARIABLES)}


def defaults() -> dict[str, Any]:
    """Return torch's settings by name; what this torch does not have is left out. Nothing is changed."""
    found: dict[str, Any] = {}
    for name, read in _READERS.items():
        try:
            found[name] = read()
        except (AttributeError, RuntimeError, KeyError, ValueError, ImportError):
            # Another torch: absent on one side is a difference, and told as one.
            continue
    return found


def _argument(function: Callable[..., Any], name: str) -> Any:
    """Return the default of a function's argument, as text where JSON has no word for it."""
    value = inspect.signature(function).parameters[name].default
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _dig(found: Any, *names: str) -> Any:
    """Return an attribute of an attribute that some torch has and its type stubs, or another torch, may not."""
    for name in names:
        found = getattr(found, name)
    return found


def _math_libraries() -> str:
    """Return the lines of torch's build that name its libraries of mathematics."""
    words = (
        "MKL",
        "oneDNN",
        "MKL-DNN",
        "OpenMP",
        "LAPACK",
        "BLAS",
        "CPU capability",
        "MAGMA",
        "NCCL",
        "CuDNN",
    )
    lines = (line.strip(" -") for line in torch.__config__.show().splitlines())
    return "; ".join(line for line in lines if line.startswith(words) or "MKL-DNN" in line)[:LONGEST]


_READERS: dict[str, Callable[[], Any]] = {
    "default_dtype": lambda: str(torch.get_default_dtype()),
    "threads": torch.get_num_threads,
    "interop_threads": torch.get_num_interop_threads,
    "cpu_capability": torch.backends.cpu.get_cpu_capability,
    "math_libraries": _math_libraries,
    "float32_matmul_precision": torch.get_float32_matmul_precision,
    # Read before the older switches: torch 2.9 and later refuse those once these were written, and nothing is written.
    "cuda.matmul.fp32_precision": lambda: torch.backends.cuda.matmul.fp32_precision,
    "cudnn.conv.fp32_precision": lambda: _dig(torch.backends.cudnn, "conv", "fp32_precision"),
    "cuda.matmul.allow_tf32": lambda: bool(torch.backends.cuda.matmul.allow_tf32),
    "cudnn.allow_tf32": lambda: bool(torch.backends.cudnn.allow_tf32),
    "cuda.matmul.allow_fp16_reduced_precision_reduction": lambda: str(
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    ),
    "cuda.matmul.allow_bf16_reduced_precision_reduction": lambda: str(
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    ),
    "cudnn.enabled": lambda: bool(torch.backends.cudnn.enabled),
    "cudnn.benchmark": lambda: bool(torch.backends.cudnn.benchmark),
    "cudnn.deterministic": lambda: bool(torch.backends.cudnn.deterministic),
    "mkldnn.enabled": lambda: bool(torch.backends.mkldnn.enabled),
    "mkldnn.deterministic": lambda: bool(torch.backends.mkldnn.deterministic),
    "mkldnn.matmul.fp32_precision": lambda: _dig(torch.backends.mkldnn, "matmul", "fp32_precision"),
    "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "cuda.flash_sdp": torch.backends.cuda.flash_sdp_enabled,
    "cuda.mem_efficient_sdp": torch.backends.cuda.mem_efficient_sdp_enabled,
    "cuda.math_sdp": torch.backends.cuda.math_sdp_enabled,
    "cuda.cudnn_sdp": lambda: bool(torch.backends.cuda.cudnn_sdp_enabled()),
    "ddp.bucket_cap_mb": lambda: _argument(DistributedDataParallel.__init__, "bucket_cap_mb"),
    "ddp.gradient_as_bucket_view": lambda: _argument(
        DistributedDataParallel.__init__, "gradient_as_bucket_view"
    ),
    "ddp.broadcast_buffers": lambda: _argument(DistributedDataParallel.__init__, "broadcast_buffers"),
    "ddp.static_graph": lambda: _argument(DistributedDataParallel.__init__, "static_graph"),
    "loader.prefetch_factor": lambda: _argument(DataLoader.__init__, "prefetch_factor"),
    "loader.pin_memory": lambda: _argument(DataLoader.__init__, "pin_memory"),
    "loader.persistent_workers": lambda: _argument(DataLoader.__init__, "persistent_workers"),
    "loader.in_order": lambda: _argument(DataLoader.__init__, "in_order"),
    "loader.start_method": lambda: str(torch.multiprocessing.get_start_method()),
    "adam.foreach": lambda: _argument(torch.optim.Adam.__init__, "foreach"),
    "adam.fused": lambda: _argument(torch.optim.Adam.__init__, "fused"),
    "adadelta.foreach": lambda: _argument(torch.optim.Adadelta.__init__, "foreach"),
    "sgd.foreach": lambda: _argument(torch.optim.SGD.__init__, "foreach"),
    "sgd.fused": lambda: _argument(torch.optim.SGD.__init__, "fused"),
    "zero_grad.set_to_none": lambda: _argument(torch.optim.Optimizer.zero_grad, "set_to_none"),
    "cuda.driver": lambda: _driver() if torch.cuda.is_available() else None,
}


def _driver() -> str:
    """Return the newest CUDA that the driver can do, as ``13.0``."""
    # torch has no public name for it; there since 1.0.
    version = int(_dig(torch, "_C", "_cuda_getDriverVersion")())
    return f"{version // 1000}.{version % 1000 // 10}"


def facts() -> dict[str, Any]:
    """Return what a stack says of its settings: ``defaults`` and ``environment``."""
    return {"defaults": defaults(), "environment": environment(given())}
