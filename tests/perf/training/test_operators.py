"""What a profile of a window keeps of what torch's profiler lists."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from perf.training import operators
from perf.training.operators import OperatorWatch, available


class Listing:
    """A profiler that lists an operator, a kernel, and CUPTI's account of itself."""

    def __init__(self, activities):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        return None

    def key_averages(self):
        return [
            SimpleNamespace(
                key=name,
                count=20,
                device_type=f"DeviceType.{where}",
                is_user_annotation=name == "a range of somebody's",
                self_cpu_time_total=host,
                self_device_time_total=device,
            )
            for name, where, host, device in (
                ("aten::conv2d", "CPU", 4000.0, 0.0),
                ("sgemm", "CUDA", 0.0, 10000.0),
                ("Command Buffer Full", "CUDA", 0.0, 50000.0),
                ("Lazy Function Loading", "CPU", 7000.0, 0.0),
                ("Optimizer.step#SGD.step", "CPU", 2000.0, 0.0),
                ("Optimizer.step#SGD.step", "CUDA", 0.0, 30000.0),
                ("DistributedDataParallel.forward", "CUDA", 0.0, 15000.0),
                ("nccl:all_reduce", "CUDA", 0.0, 9600.0),
                ("ncclDevKernel_AllReduce", "CUDA", 0.0, 9600.0),
                ("a range of somebody's", "CUDA", 0.0, 9000.0),
            )
        ]


def test_what_the_profiler_does_itself_is_no_operator(monkeypatch):
    """CUPTI's own work is listed with time of a device, and a range's shadow with its kernels' time over again."""
    monkeypatch.setattr(operators, "profile", Listing)
    watch = OperatorWatch(on_gpu=True)
    watch.window(True)
    watch.window(False)
    found = watch.per_step(10)

    expected = {
        "aten::conv2d": (2.0, 4e-4, 0.0),
        "sgemm": (2.0, 0.0, 1e-3),
        "Optimizer.step#SGD.step": (2.0, 2e-4, 0.0),
        "ncclDevKernel_AllReduce": (2.0, 0.0, 9.6e-4),
    }
    assert expected == {
        name: (one.calls, one.host_seconds, one.device_seconds) for name, one in found.items()
    }


@pytest.mark.skipif(not available(), reason="this torch has no profiler built in")
def test_stretches_of_a_window_add_up():
    """Each stretch has a profiler of its own; calls are a step's, whatever stretch they are in."""
    watch = OperatorWatch(on_gpu=False)
    for _ in range(2):
        watch.window(True)
        for _ in range(3):
            torch.ones(4).add(1.0)
        watch.window(False)

    assert 1.0 == watch.per_step(6)["aten::add"].calls
