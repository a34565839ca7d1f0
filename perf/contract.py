"""What the driver and the worker say to each other: launch spec, rank record, launch record.

The driver writes one launch spec; each rank writes one rank record; the driver merges the rank records of a
launch into one launch record. All three are JSON objects in files, written whole and moved into place.

This module is imported by both sides, so it imports nothing but the standard library and keeps to Python 3.9.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import secrets
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional, TypeVar, Union

SCHEMA = 1
"""Raised when a field changes its meaning or goes away. A reader refuses a newer schema than its own."""

SPEC_FILE = "spec.json"
RANK_FILE = "rank-{rank}.json"
STACK_FILE = "stack-{rank}.txt"
STATE_FILE = "state-{rank}.json"
MODEL_FILE = "model.pt"
TRACE_FILE = "trace-rank-{rank}.json.gz"
NSYS_FILE = "trace.nsys-rep"
"""What Nsight Systems leaves: one file a launch, with all ranks of a node."""

EDGE_PIPE = "edges.pipe"
"""A named pipe in the launch's folder: each rank writes one line when a window of its begins or ends, so that whoever
samples the machine reads cumulative counters there. Where there is none, nobody listens."""

STARTED = "STACKPROOF_STARTED"
"""Variable of a launch's processes: when it was started, by the system's steady clock (``time.monotonic``)."""

UNAVAILABLE = "unavailable"
"""Phase in a rank's state file: this stack or device lacks what was asked for; the file's ``reason`` says what."""

OPTIMIZATIONS = ("channels_last", "non_blocking", "fused", "compile", "cuda_graph", "autotune")
"""Switches of a launch, in the order in which they are written."""

FEWEST_STEPS = 50
"""Steps of the shortest window on a GPU, as the design has it: its halves still have a median of 25 steps each."""

DDP_SWITCHES = ("view", "static", "nobuffers", "nosync")
"""Switches of DistributedDataParallel, in the order in which they are written, behind ``bucket<MB>``."""

T = TypeVar("T")


class ContractError(ValueError):
    """A spec or a record that does not keep to the contract. The message says where and what was expected."""


@dataclass(frozen=True)
class LaunchSpec:
    """One launch: what to train, how, for how long, and where to write.

    Counts are per rank unless they say otherwise. `cores` is what the launch was promised on each node, for the
    threads of its ranks and their loader workers. `batch_size` and `workers` are per device: DataParallel, one
    rank over `gpus` devices, loads ``batch_size * gpus`` samples a step with ``workers * gpus`` loader workers, so
    that it can be held against as many DDP ranks. Times are in seconds.

    `plan` says what the launch is for: ``window`` (warm-up, then a timed window), ``epochs`` (`epochs` whole epochs
    with validation, a window inside them), ``solution`` (the same, to see when a target is reached), ``audit`` (the
    loader alone, counting which samples it delivers) or ``rates`` (component rates of the machine, `min_seconds` for
    each; nothing is trained).
    `epoch_samples` makes an epoch shorter than the data set, `later_epoch_batches` cuts every epoch of an audit but
    the first, `validate_samples` limits the validation set; null means all.

    `optimizations` are switched on one by one, in the order of `OPTIMIZATIONS`; `optimizer` and `schedule` are names of
    the workload's, "" its own. `persistent`, `prefetch` (batches a worker keeps ready; null: torch's default) and
    `pin_memory` (null: on a GPU) belong to loaders with workers. `save_model` writes the trained parameters beside
    the record, as the tutorials do. `side` is ``old`` or ``new`` where two stacks are compared, `launcher` is
    ``fresh`` or, where the process was forked from one that had imported torch, ``fork``. `numa` binds each rank to
    the cores beside its GPU, where they suffice; `tied_cores` (0: none) ties each rank, with its loader workers, to so
    many of the allowed cores a device, wherever they are. A window that would take longer than `max_seconds` (0: no
    limit) has fewer steps than `timed_steps`, but no fewer than `FEWEST_STEPS`. `watch_operators` has torch's profiler
    watch it.

    `bucket_cap_mb` is DistributedDataParallel's (null: unset, which is not the same as its default in words, 25), and
    `ddp_switches` are of `DDP_SWITCHES`: ``view`` (gradient_as_bucket_view), ``static`` (static_graph), ``nobuffers``
    (broadcast_buffers off) and ``nosync`` (every step under no_sync: nothing is all-reduced).

    `rate_rule` multiplies the workload's learning rate for the global batch over `rate_base_batch`: ``none``,
    ``linear`` or ``sqrt``, reached after `rate_warmup` steps; "" leaves it alone.

    `trace` is ``torch`` for a launch under torch's profiler, ``nsys`` for one under Nsight Systems, else "".
    """

    run: str
    launch: str
    variant: str
    group: str
    round: int
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
    plan: str
    batch_size: int
    workers: int
    threads: int
    cores: int
    seed: int
    warmup_steps: int
    timed_steps: int
    min_seconds: float
    epochs: int
    cache_dir: str
    out_dir: str
    time_limit_seconds: float
    parameters: int
    train_samples: int
    validation_samples: int
    epoch_samples: Optional[int] = None
    later_epoch_batches: Optional[int] = None
    validate_samples: Optional[int] = None
    data_root: Optional[str] = None
    phases: bool = False
    line_profile: bool = False
    escalation: str = ""
    optimizations: list[str] = field(default_factory=list)
    optimizer: str = ""
    schedule: str = ""
    persistent: bool = False
    prefetch: Optional[int] = None
    pin_memory: Optional[bool] = None
    save_model: bool = False
    side: str = ""
    launcher: str = "fresh"
    numa: bool = False
    tied_cores: int = 0
    max_seconds: float = 0.0
    watch_operators: bool = False
    bucket_cap_mb: Optional[int] = None
    ddp_switches: list[str] = field(default_factory=list)
    trace: str = ""
    rate_rule: str = ""
    rate_warmup: int = 0
    rate_base_batch: int = 0
    schema: int = SCHEMA

    @property
    def world_size(self) -> int:
        """Ranks in the whole launch."""
        return self.nodes * self.ranks_per_node

    @property
    def devices_per_rank(self) -> int:
        """Devices that one rank feeds: more than one under DataParallel only."""
        return self.gpus if self.strategy == "dp" else 1


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

    `batches` and `samples` are counted from what the loader delivered. `seconds` runs from before the loader is
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
    with every device synchronized at its edges; `halves` the medians of the window's two halves. `losses` are means
    over the first and the last tenth of all steps. `wait_seconds` is the host's time in the loader inside the
    window, `drain_seconds` what the host waited for the devices at the window's end, after it had queued the last
    step: a host that runs ahead of its devices waits for several steps there, one that
    holds them up for none. `window_edges` holds begin and end of each stretch of the window by the system's own clock
    (Unix time), which whoever sampled the machine meanwhile has too. A reading that cannot be had is null, never 0.
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
    schema: int = SCHEMA


@dataclass(frozen=True)
class LaunchRecord:
    """One launch, merged over its ranks. Lists over ranks are in rank order; rates are global.

    `samples` is what all ranks delivered inside the window, `window_seconds` the slowest rank's, and
    `samples_per_second` the first over the second. `median_step_seconds` is the median step of the slowest rank:
    the one number per launch that verdicts are made of. `started_at` is the Unix time at which the launch's first
    process was started, and that process ended `launch_seconds` later.

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
    schema: int = SCHEMA

    @property
    def wait_share(self) -> Optional[float]:
        """Part of the window that the rank which waits most spends in the loader; None without a window."""
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


def encode(message: Any) -> str:
    """Return one of this module's dataclasses as one line of JSON.

    Raises
    ------
    ContractError
        If it holds NaN or infinity, which are not JSON. The message says where.
    """
    data = dataclasses.asdict(message)
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        places = ", ".join(_not_finite(data, "$")) or str(error)
        raise ContractError(
            f"{type(message).__name__}: {places}; a reading that can't be had is null"
        ) from error


def decode(kind: type[T], text: Union[str, bytes], where: str) -> T:
    """Read one of this module's dataclasses from JSON.

    Parameters
    ----------
    kind
        The dataclass to build.
    text
        JSON text of one object.
    where
        File, or file and line, for the error message.

    Raises
    ------
    ContractError
        If the text is no JSON object, a key is unknown or missing, a value has the wrong type or is not finite, or
        the schema is newer than this suite knows.
    """
    try:
        data = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ContractError(
            f"{where}: not readable as JSON ({error}); the file was cut short or overwritten"
        ) from error
    if isinstance(data, dict) and isinstance(data.get("schema"), int) and data["schema"] > SCHEMA:
        raise ContractError(
            f"{where}: written with schema {data['schema']}, this suite reads up to {SCHEMA}; use a newer stackproof"
        )
    return typing.cast(T, _convert(kind, data, where, "$"))


def write_whole(path: str, text: str) -> None:
    """Write `text` to `path` so that a reader sees all of it or nothing: temporary file, fsync, rename."""
    # Not tempfile.mkstemp: that makes files of mode 0600, which colleagues who share the folder could not read.
    temporary = os.path.join(os.path.dirname(path), f".writing-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        # The message of the first error is what matters; a left-over temporary file must not hide it.
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large for a number")
    return number


def _not_finite(value: Any, path: str) -> Iterator[str]:
    """Yield where NaN and infinity lie in JSON-like data."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path} is {value}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _not_finite(item, f"{path}[{i}]")


def _convert(kind: Any, value: Any, where: str, path: str) -> Any:
    """Check `value` against the annotation `kind` and build dataclasses on the way."""
    if kind is Any:
        return value
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin is Union or origin is getattr(types, "UnionType", Union):
        if value is None:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, where, path)
    if origin is list:
        return _convert_list(arguments[0], value, where, path)
    if origin is dict:
        _expect(isinstance(value, dict), "an object", value, where, path)
        return {key: _convert(arguments[1], item, where, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _convert_dataclass(kind, value, where, path)
    if kind is float:
        _expect(
            isinstance(value, (int, float)) and not isinstance(value, bool), "a number", value, where, path
        )
        try:
            return float(value)
        except OverflowError as error:
            raise ContractError(f"{where}: {path} is too large for a number") from error
    if kind is int:
        _expect(isinstance(value, int) and not isinstance(value, bool), "a whole number", value, where, path)
    else:
        _expect(
            isinstance(value, kind),
            {str: "text", bool: "true or false"}.get(kind, str(kind)),
            value,
            where,
            path,
        )
    return value


def _convert_list(kind: Any, value: Any, where: str, path: str) -> Any:
    _expect(isinstance(value, list), "a list", value, where, path)
    if kind is float and all(type(item) is float for item in value):
        # The step times, thousands of them: each was found finite as it was read.
        return list(value)
    return [_convert(kind, item, where, f"{path}[{i}]") for i, item in enumerate(value)]


def _convert_dataclass(kind: Any, value: Any, where: str, path: str) -> Any:
    _expect(isinstance(value, dict), "an object", value, where, path)
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise ContractError(f"{where}: {path} has the unknown key {unknown[0]!r} for {kind.__name__}")
    missing = [
        name
        for name, f in fields.items()
        if name not in value and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ContractError(f"{where}: {path} lacks the key {missing[0]!r} of {kind.__name__}")
    return kind(
        **{name: _convert(hints[name], item, where, f"{path}.{name}") for name, item in value.items()}
    )


def _expect(condition: bool, expected: str, value: Any, where: str, path: str) -> None:
    if not condition:
        raise ContractError(f"{where}: {path} must be {expected}, found {value!r:.80}")
