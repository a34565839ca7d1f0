"""What torch's profiler sees of the window: each operator's own time. For launches of their own: it slows them."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch.profiler import ProfilerActivity, profile

from perf.contract import Operator

MOST = 200
"""Operators of a record, those with the most time: a large network's step has some dozens of names, its kernels some
dozens more."""

OVERHEADS = frozenset(
    (
        "Driver Compiler",
        "Buffer Flush",
        "Instrumentation",
        "Resource",
        "Runtime Triggered Module Loading",
        "Lazy Function Loading",
        "Command Buffer Full",
        "Activity Buffer Request",
        "UVM Activity Init",
    )
)
"""What CUPTI (CUpti_ActivityOverheadKind) says of its own work: the profiler lists it among the operators, with time of
a device, on H200s 25 ms of a step of 79. No step without a profiler has it."""

SHADOWED = (
    "Optimizer.",
    "enumerate(DataLoader)",
    "DistributedDataParallel.",
    "DataParallel.",
    "nccl:",
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "ProfilerStep",
)
"""How ranges begin that torch itself gives. Each has a shadow on the device, from its first kernel to its last: the
kernels' own time, and the gaps between them. Newer torch says of an event that it is such a range."""

MICROSECOND = 1e-6


class OperatorWatch:
    """Watches each stretch of the window with a profiler of its own and adds up what it saw.

    Parameters
    ----------
    on_gpu
        Whether kernels of a GPU are watched too. Devices must be synchronized at a stretch's edges, as the meter does.
    """

    def __init__(self, on_gpu: bool) -> None:
        self._activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
        self._profiler: Optional[Any] = None
        self._seen: dict[str, list[float]] = {}

    def window(self, opens: bool) -> None:
        """Begin at the opening of a stretch, and end at its close."""
        if opens:
            self._profiler = profile(activities=self._activities)
            self._profiler.__enter__()
            return
        if self._profiler is None:
            return
        self._profiler.__exit__(None, None, None)
        for event in self._profiler.key_averages():
            if event.key in OVERHEADS or _is_shadow(event):
                continue
            seen = self._seen.setdefault(str(event.key), [0.0, 0.0, 0.0])
            seen[0] += event.count
            seen[1] += max(0.0, float(event.self_cpu_time_total)) * MICROSECOND
            seen[2] += max(0.0, _device_time(event)) * MICROSECOND
        self._profiler = None

    def per_step(self, steps: int) -> dict[str, Operator]:
        """Return calls and own seconds a step, by name; those of a device are charged to kernel and operator alike.

        Parameters
        ----------
        steps
            Steps that the window holds.
        """
        if not steps:
            return {}
        largest = sorted(self._seen.items(), key=lambda item: -max(item[1][1:]))[:MOST]
        return {name: Operator(*(round(value / steps, 12) for value in seen)) for name, seen in largest}


def _is_shadow(event: Any) -> bool:
    on_device = "CUDA" in str(getattr(event, "device_type", ""))
    is_range = getattr(event, "is_user_annotation", False) or str(event.key).startswith(SHADOWED)
    return on_device and is_range


def _device_time(event: Any) -> float:
    """Return an event's own time on devices, in microseconds; torch before 2.4 has it under another name."""
    for name in ("self_device_time_total", "self_cuda_time_total"):
        value = getattr(event, name, None)
        if value is not None:
            return float(value)
    return 0.0


def available() -> bool:
    """Whether this torch has a profiler built in."""
    # Which module exports it is not the same in every torch.
    return bool(getattr(torch.autograd, "kineto_available", lambda: True)())
