"""Records of a run that never took place: complete, with round numbers, changed by keyword."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from perf.contract import LaunchRecord
from perf.records import VerdictRecord

LAUNCH = LaunchRecord(
    run="20261127T101500Z-abcdef",
    launch="launch-001",
    variant="mnist_cnn-ddp-2cpu-gloo-fp32-native",
    group="mnist",
    round=0,
    escalation="",
    plan="window",
    workload="mnist_cnn",
    strategy="ddp",
    device="cpu",
    backend="gloo",
    nodes=1,
    ranks_per_node=2,
    gpus=2,
    precision="fp32",
    loader="native",
    mode="full",
    batch_size=64,
    workers=0,
    cores=2,
    seed=1,
    started_at=1_795_000_000.0,
    launch_seconds=8.2,
    stack={"python": "3.11.9", "torch": "2.6.0", "torch_path": "/opt/a/torch", "cuda": None},
    data={"source": "generated"},
    host=["node1", "node1"],
    device_names=["cpu"],
    gpu_uuids=[[None], [None]],
    step_seconds=[[0.075, 0.0751], [0.0752, 0.0751]],
    median_step_seconds=0.0751,
    halves=[[0.075, 0.0751], [0.0752, 0.0751]],
    window_seconds=2.0,
    window_seconds_per_rank=[1.9, 2.0],
    warmup_steps=20,
    samples=1706,
    samples_per_second=853.0,
    wait_seconds=[0.019, 0.04],
    total_steps=[22, 22],
    loss_first=2.3,
    loss_last=1.9,
    losses_finite=True,
    first_step_seconds=0.4,
    epoch_seconds=[],
    epochs=[[], []],
    parameters=1_199_882,
    parameters_digests=["d", "d"],
    peak_memory_bytes=[{"cuda:0": 512 * 2**20}, {"cuda:1": 3 * 2**29}],
    reserved_memory_bytes=[{}, {}],
    allocator_retries=0,
    effective=[{}, {}],
    threads=[{}, {}],
    startup_seconds=[{}, {}],
    telemetry={},
    valid=True,
    reasons=[],
)

VERDICT = VerdictRecord(
    run="20261127T101500Z-abcdef",
    test="perf/test_strategies.py::test_ddp_is_not_slower_than_dp[resnet50-2gpu-nccl-bf16]",
    group="resnet50",
    variant="resnet50-ddp-2gpu-nccl-bf16-native8",
    against="resnet50-dp-2gpu-bf16-native8",
    metric="step time",
    unit="ratio",
    estimate=1.31,
    low=1.24,
    high=1.38,
    limit=1.0,
    verdict="fail",
    launches=10,
    detectable=0.04,
    reasons=["DDP takes 1.31 × the step of DataParallel."],
)


@pytest.fixture(scope="session")
def launch():
    """A launch; keywords change fields."""
    return lambda **changes: dataclasses.replace(LAUNCH, **changes)


@pytest.fixture(scope="session")
def verdict():
    """A judgement; keywords change fields."""
    return lambda **changes: dataclasses.replace(VERDICT, **changes)


class Paper(io.StringIO):
    """What a console writes on, in an encoding of one's choice."""

    encoding = "utf-8"


@pytest.fixture
def paper():
    """Consoles that write to memory: `paper(width)` is a pipe, `terminal=True` a terminal."""

    def make(width=80, encoding="utf-8", *, terminal=False, **options):
        file = Paper()
        file.encoding = encoding
        return Console(file=file, width=width, height=25, force_terminal=terminal, _environ={}, **options)

    return make
