"""What the driver asks of a launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from perf.contract.names import SCHEMA


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
    limit) has fewer steps than `timed_steps`, but no fewer than `FEWEST_STEPS`; with a limit one step in `SPARED` may
    also be lacking where an epoch ends. A warm-up whose steps would take longer than `warmup_seconds` (0: no limit) has
    fewer than `warmup_steps`, but no fewer than `FEWEST_WARM_UP` (with a CUDA graph `FEWEST_WITH_CAPTURE`), and none
    less than a loader's queue holds. `workers_held`: the epochs are too short for the queue of as many workers as the
    cores would feed. `watch_operators` has torch's profiler watch the window.

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
    warmup_seconds: float = 0.0
    workers_held: bool = False
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
