"""Optimizations: switched on where they can be, refused with a reason where they can't, read back from what ran.

Each is one rung of the ladder: ``channels_last``, ``non_blocking``, ``fused``, ``compile``, ``cuda_graph`` and
``autotune``. A rung that was asked for and is not in force is an error; one that this stack or device does not have is
`Unavailable`, with the reason.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Optional

import torch

from models.interface import Workload
from perf.training.settings import Unavailable
from perf.training.strategies import unwrap


def refuse_unavailable(
    optimizations: Sequence[str], *, device: torch.device, strategy: str, precision: str, loader: str
) -> None:
    """Raise Unavailable where one of the optimizations, or the precision, can't be had here.

    What only shows when it is tried (a fused optimizer) is refused there.
    """
    on_gpu = device.type == "cuda"
    if precision == "fp16" and not on_gpu:
        raise Unavailable("fp16: float16 is for GPUs; on a CPU use bf16")
    if precision == "tf32" and (not on_gpu or torch.cuda.get_device_capability(device) < (8, 0)):
        raise Unavailable("tf32: only NVIDIA GPUs since Ampere (compute capability 8.0) have it")
    if precision == "tf32" and torch.version.hip:
        raise Unavailable("tf32: only NVIDIA GPUs have it")
    for name in optimizations:
        reason = _why_unavailable(name, device, strategy, loader)
        if reason:
            raise Unavailable(f"{name}: {reason}")


def _why_unavailable(name: str, device: torch.device, strategy: str, loader: str) -> Optional[str]:
    on_gpu = device.type == "cuda"
    if name == "non_blocking":
        if not on_gpu:
            return "a CPU has no copy to a device that could overlap with anything"
        return "the loader resident makes its batches on the device" if loader == "resident" else None
    if name == "compile":
        return _why_no_compiler(device, strategy)
    if name == "cuda_graph" and not on_gpu:
        return "only GPUs have graphs"
    if name == "cuda_graph" and strategy != "single":
        return (
            "a graph of a step on several GPUs would have to hold NCCL's work, which this suite does not do"
        )
    if name == "autotune" and not (on_gpu and torch.backends.cudnn.is_available()):
        return "cuDNN is not in use"
    return None


def _why_no_compiler(device: torch.device, strategy: str) -> Optional[str]:
    if strategy == "dp":
        return "torch.compile does not compile the replicas of DataParallel"
    if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return "TORCHDYNAMO_DISABLE=1 is set"
    if device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "this stack has no triton, which writes the kernels"
    named = os.environ.get("CC" if device.type == "cuda" else "CXX", "")
    if not any(shutil.which(c) for c in (named, "gcc", "g++", "cc", "c++", "clang", "clang++") if c):
        return "there is no C compiler on PATH, which torch.compile needs"
    return None


def memory_format(model: torch.nn.Module) -> torch.memory_format:
    """Return the channels-last format of a network's images or volumes."""
    volumes = any(isinstance(m, (torch.nn.Conv3d, torch.nn.ConvTranspose3d)) for m in model.modules())
    return torch.channels_last_3d if volumes else torch.channels_last


def make_optimizer(
    workload: Workload, model: torch.nn.Module, name: str, optimizations: Sequence[str]
) -> torch.optim.Optimizer:
    """Return the optimizer, fused or fit for a CUDA graph where that was asked for.

    Raises
    ------
    Unavailable
        If torch has no such form of this optimizer, or not on this device.
    """
    flags: dict[str, Any] = {}
    plain = workload.make_optimizer(model, name)
    if "fused" in optimizations:
        flags["fused"] = True
    # SGD has no state that a graph would freeze, and no such flag.
    if "cuda_graph" in optimizations and "capturable" in plain.defaults:
        flags["capturable"] = True
    elif "cuda_graph" in optimizations and not isinstance(plain, torch.optim.SGD):
        raise Unavailable(
            f"cuda_graph: {type(plain).__name__} can't be captured in torch {torch.__version__}"
        )
    if not flags:
        return plain
    try:
        return workload.make_optimizer(model, name, **flags)
    except (TypeError, RuntimeError) as error:
        if "fused" not in flags:
            raise
        raise Unavailable(
            f"fused: torch {torch.__version__} has no fused {type(plain).__name__} here ({error})"
        ) from error


def compile_model(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model compiled; it is compiled when it is first called."""
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()  # noqa: SLF001
    compiled = torch.compile(model)
    assert isinstance(compiled, torch.nn.Module)
    return compiled


def end_compilers() -> None:
    """End Inductor's own compile process without waiting for it, once nothing will be compiled any more.

    torch starts one whatever the caches hold, and waits for its end as this process ends: on an H200's host for 4 to
    6 s where the caches held all, so that it had compiled nothing (2026-11-29; by the rank's own times). Processes that
    it had forked end by themselves within a minute, or with all of a launch's where a driver started that.
    """
    for pool in getattr(sys.modules.get("torch._inductor.async_compile"), "_pool_set", ()):
        process = getattr(pool, "process", None)
        if isinstance(process, subprocess.Popen) and hasattr(pool, "running"):
            # Torch's own sign that it has been ended.
            pool.running = False
            process.kill()


def compiled_facts(model: torch.nn.Module) -> dict[str, Any]:
    """Return whether the model is a compiled one, and what dynamo says that it compiled and ran.

    `frames` counts the functions that were compiled, `graphs` the graphs that they became, `breaks` the places where
    Python had to take over.
    """
    wrapped = hasattr(model, "_orig_mod")
    if not wrapped:
        return {"wrapped": False, "frames": 0, "graphs": 0, "breaks": 0}
    # torch has no public name for these counters; there since 2.0.
    counters = torch._dynamo.utils.counters  # noqa: SLF001
    return {
        "wrapped": True,
        "frames": int(counters["frames"].get("ok", 0)),
        "graphs": int(counters["stats"].get("unique_graphs", 0)),
        "breaks": int(sum(counters["graph_break"].values())),
    }


def owns_parameters(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> bool:
    """Say whether the optimizer steps exactly the parameters of the model that is called."""
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return stepped == {id(p) for p in unwrap(model).parameters() if p.requires_grad}


def weights_channels_last(model: torch.nn.Module) -> Optional[bool]:
    """Say whether the convolutions' weights lie channels-last; None where there is none for which that is a choice."""
    fmt = memory_format(model)
    dimensions = 5 if fmt is torch.channels_last_3d else 4
    # With one channel, or a kernel of one pixel, both orders are the same in memory.
    weights = [
        p for p in model.parameters() if p.dim() == dimensions and p.shape[1] > 1 and max(p.shape[2:]) > 1
    ]
    return all(w.is_contiguous(memory_format=fmt) for w in weights) if weights else None


def not_in_force(optimizations: Sequence[str], effective: dict[str, Any]) -> list[str]:
    """Return one sentence for each optimization that was asked for and is not in force, and for each that was not.

    `effective` is what `perf.training.session` read back.
    """
    problems = []
    found = {
        "channels_last": bool(effective["channels_last"]["weights"]),
        "non_blocking": bool(effective["non_blocking"]["in_force"]),
        "fused": bool(effective["optimizer_flags"].get("fused")),
        "compile": bool(effective["compiled"]["wrapped"]),
        "cuda_graph": effective["cuda_graph"] is not None,
        "autotune": bool(effective["cudnn_benchmark"]),
    }
    for name, there in found.items():
        if name in optimizations and not there:
            problems.append(f"{name} was asked for and is not in force")
        # torch's own default may change to on; that is for precision `default` and the probe to show.
        if name not in optimizations and there and name not in ("autotune", "channels_last"):
            problems.append(f"{name} was not asked for and is in force")
    if "compile" in optimizations and found["compile"] and not effective["compiled"]["frames"]:
        problems.append(
            "compile was asked for, but nothing was compiled: the model that trains is not that one"
        )
    if "channels_last" in optimizations and effective["channels_last"]["activations"] is False:
        problems.append("channels_last was asked for, but activations are not channels-last")
    if "non_blocking" in optimizations and effective["non_blocking"]["pinned"] is False:
        problems.append("non_blocking was asked for, but batches are not in pinned memory, so copies block")
    if "cuda_graph" in optimizations and found["cuda_graph"] and not effective["cuda_graph"]["replays"]:
        problems.append("cuda_graph was asked for, but no graph was replayed")
    if not effective["owns_parameters"]:
        problems.append("the optimizer does not step the parameters of the model that trains")
    return problems
