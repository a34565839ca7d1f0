"""What one rank answers: its record, and what the record is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from perf.contract.names import SCHEMA


@dataclass(frozen=True)
class Rate:
    """One component rate of a machine: how much or how often a second, so that larger is better.

    `value` is the median of `repetitions`, all in `unit` (``FLOP/s``, ``B/s``, ``1/s``), `spread` the standard
    deviation of their logarithms, null below two. `about` says what was done: sizes, types, the state of the page
    cache. Where `value` is null, `reason` says why.
    """

    value: Optional[float]
    unit: str
    repetitions: list[float] = field(default_factory=list)
    spread: Optional[float] = None
    about: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Operator:
    """One operator or kernel of a step, as torch's profiler saw it: calls and own seconds a step, without its children.

    `host_seconds` is time on the host's threads, `device_seconds` on the devices.
    """

    calls: float
    host_seconds: float
    device_seconds: float


@dataclass(frozen=True)
class EpochRecord:
    """One epoch as one rank saw it.

    `batches` and `samples` are counted from what the loader delivered; of batches inside a long window, which have as
    many samples as the others, one in n is looked at. `seconds` runs from before the loader is
    asked for its first batch to the end of the last step, every device synchronized at both ends; validation is
    apart from it. The audit fields are filled where the plan is ``audit``: `distinct` counts different samples, `order`
    is a digest of the first indices in the order of delivery (as many as every epoch of the launch delivered), `seen`
    the set of indices as a bitmap (zlib, base64; bit i % 8 of byte i // 8 is sample i).
    """

    index: int
    seconds: float
    batches: int
    samples: int
    complete: bool
    first_batch_seconds: float
    validation_loss: Optional[float] = None
    validation_accuracy: Optional[float] = None
    validation_seconds: Optional[float] = None
    validation_samples: Optional[int] = None
    distinct: Optional[int] = None
    order: Optional[str] = None
    seen: Optional[str] = None


@dataclass(frozen=True)
class RankRecord:
    """What one rank measured. Times are in seconds, memory in bytes.

    `step_seconds` holds the steps of the timed window only, `window_seconds` the same window by the host's clock
    with every device synchronized at its edges; `halves` the medians of the window's two halves. `loss_first` and
    `loss_last` are means over the first and the last tenth of all steps; a long window keeps one loss in n between its
    own first and last tenth, and `losses_finite` is about those that were kept. `wait_seconds` is the host's time in
    the loader inside the window (0 in mode ``synthetic``, where there is none), `drain_seconds` what the host waited
    for the devices at the window's end, after it had queued the last step: a host that runs ahead of its devices waits
    for several steps there, one that holds them up for none. `window_edges` holds begin and end of each stretch of the
    window by the system's own clock (Unix time), which whoever sampled the machine meanwhile has too.
    `peak_memory_bytes` is of the whole launch, `window_peak_memory_bytes` of the window: empty where a CUDA graph
    replays, which allocates nothing. `clock` says what `step_seconds` are of: ``events`` among the work that a GPU has
    queued, or the ``host``'s clock, on a CPU and where a host holds its GPU up, or ``mixed``. A reading that cannot be
    had is null, never 0.
    """

    run: str
    launch: str
    variant: str
    rank: int
    world_size: int
    local_rank: int
    host: str
    pid: int
    started_at: float
    device_names: list[str]
    gpu_uuids: list[Optional[str]]
    stack: dict[str, Any]
    data: dict[str, Any]
    warmup_steps: int
    step_seconds: list[float]
    window_seconds: float
    window_samples: int
    wait_seconds: float
    halves: list[float]
    total_steps: int
    loss_first: Optional[float]
    loss_last: Optional[float]
    losses_finite: Optional[bool]
    first_step_seconds: Optional[float]
    epochs: list[EpochRecord]
    parameters: int
    parameters_digest: Optional[str]
    peak_memory_bytes: dict[str, int]
    reserved_memory_bytes: dict[str, int]
    allocator_retries: dict[str, int]
    effective: dict[str, Any]
    threads: dict[str, Any]
    startup_seconds: dict[str, float]
    telemetry: dict[str, Any]
    phase_seconds: Optional[dict[str, list[float]]] = None
    line_profile: Optional[str] = None
    drain_seconds: Optional[float] = None
    rates: dict[str, Rate] = field(default_factory=dict)
    window_edges: list[list[float]] = field(default_factory=list)
    operators: Optional[dict[str, Operator]] = None
    trace: Optional[str] = None
    trace_facts: Optional[dict[str, Any]] = None
    window_peak_memory_bytes: dict[str, int] = field(default_factory=dict)
    clock: Optional[str] = None
    schema: int = SCHEMA
