"""What the driver keeps of a launch: the records of its ranks, merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from perf.contract.measured import EpochRecord, Operator, Rate
from perf.contract.names import SCHEMA


@dataclass(frozen=True)
class LaunchRecord:
    """One launch, merged over its ranks. Lists over ranks are in rank order; rates are global.

    `samples` is what all ranks delivered inside the window, `window_seconds` the slowest rank's, and
    `samples_per_second` the first over the second. `median_step_seconds` is the median step of the slowest rank: the
    one number per launch that verdicts are made of, but where a loader is waited for (`perf.verdict.pace`).
    `started_at` is the Unix time at which the launch's first process was started, and that process ended
    `launch_seconds` later.

    `telemetry` is what was observed beside the launch (docs/telemetry.md). `reasons` say why a launch is not `valid`;
    `unfit` are those of them that are facts about the machine alone: such a launch is replaced, and the one that comes
    in its place names it in `replaces`. `shared_node` says that other launches might run on the node meanwhile.
    """

    run: str
    launch: str
    variant: str
    group: str
    round: int
    escalation: str
    plan: str
    workload: str
    strategy: str
    device: str
    backend: str
    nodes: int
    ranks_per_node: int
    gpus: int
    precision: str
    loader: str
    mode: str
    batch_size: int
    workers: int
    cores: int
    seed: int
    started_at: float
    launch_seconds: float
    stack: dict[str, Any]
    data: dict[str, Any]
    host: list[str]
    device_names: list[str]
    gpu_uuids: list[list[Optional[str]]]
    step_seconds: list[list[float]]
    median_step_seconds: float
    halves: list[list[float]]
    window_seconds: float
    window_seconds_per_rank: list[float]
    warmup_steps: int
    samples: int
    samples_per_second: float
    wait_seconds: list[float]
    total_steps: list[int]
    loss_first: Optional[float]
    loss_last: Optional[float]
    losses_finite: Optional[bool]
    first_step_seconds: Optional[float]
    epoch_seconds: list[float]
    epochs: list[list[EpochRecord]]
    parameters: int
    parameters_digests: list[Optional[str]]
    peak_memory_bytes: list[dict[str, int]]
    reserved_memory_bytes: list[dict[str, int]]
    allocator_retries: int
    effective: list[dict[str, Any]]
    threads: list[dict[str, Any]]
    startup_seconds: list[dict[str, float]]
    telemetry: dict[str, Any]
    valid: bool
    reasons: list[str]
    flags: list[str] = field(default_factory=list)
    phase_seconds: Optional[list[dict[str, list[float]]]] = None
    line_profiles: list[str] = field(default_factory=list)
    optimizations: list[str] = field(default_factory=list)
    optimizer: str = ""
    schedule: str = ""
    drain_seconds: list[Optional[float]] = field(default_factory=list)
    rates: dict[str, Rate] = field(default_factory=dict)
    side: str = ""
    launcher: str = "fresh"
    unfit: list[str] = field(default_factory=list)
    replaces: str = ""
    operators: list[dict[str, Operator]] = field(default_factory=list)
    bucket_cap_mb: Optional[int] = None
    ddp_switches: list[str] = field(default_factory=list)
    shared_node: bool = False
    traces: list[str] = field(default_factory=list)
    trace_facts: list[dict[str, Any]] = field(default_factory=list)
    window_peak_memory_bytes: list[dict[str, int]] = field(default_factory=list)
    clocks: list[Optional[str]] = field(default_factory=list)
    schema: int = SCHEMA

    @property
    def mean_step_seconds(self) -> float:
        """The mean step of the slowest rank, what lies between two steps with it; the median one where it has none."""
        pairs = zip(self.window_seconds_per_rank, self.step_seconds)
        return max(
            (window / len(steps) for window, steps in pairs if steps), default=self.median_step_seconds
        )

    @property
    def wait_share(self) -> Optional[float]:
        """Part of the window that the rank which waits most spends waiting for data.

        None without a window, on batches that are there already, whose waits are not noted, and with a loader that
        makes its batches on a GPU: the host launches kernels there, and has to wait where CUDA's queue is full of
        training's (37 % of the window of `resnet152`, in steps as long as those without a loader:
        docs/measurements/2026-11-29-h200-third).
        """
        if self.mode == "synthetic" or (self.loader == "resident" and self.device == "cuda"):
            return None
        pairs = zip(self.wait_seconds, self.window_seconds_per_rank)
        return max((wait / window for wait, window in pairs if window > 0.0), default=None)

    @property
    def profiled(self) -> str:
        """What profile it was a launch of its own for, "" if none: it is never judged, since a profile slows it."""
        if self.trace_facts:
            return "nsys" if self.trace_facts[0].get("tool") == "nsys" else "torch-trace"
        if self.line_profiles:
            return "line-profile"
        if self.operators:
            return "operators"
        return "" if self.phase_seconds is None else "phases"
