"""Before the first launch: is this node fit for what is planned? Each check is pure; `collect` reads the node.

A finding that is not ok stops the launches that it names, with its sentence and remedy, and no others.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perf.contract import LaunchSpec
from perf.launch.machine_facts import FOREIGN_BYTES
from perf.launch.node_limits import free_port, read_cards, soft_limit, tasks_left
from perf.launch.stack import Stack
from perf.launch.telemetry.reading import GpuReading
from perf.launch.text import harmless
from perf.launch.validity import cores_needed
from perf.machine import cores_allowed, shared_memory_bytes

PREFETCH = 2
"""Batches that a DataLoader worker keeps ready: torch's own default, which every native loader here uses."""

TENSORS_PER_BATCH = 2
"""Data and target."""

FILES_PER_RANK = 256
"""Open files that a rank of torch with NCCL holds beside its loader: libraries, sockets to each peer, CUDA's own."""

FILES_PER_WORKER = 8
"""A worker's pipes, queue and sentinel, as the rank holds them."""

TASKS_PER_RANK = 64
"""Room for the threads of a rank beside torch's own: gloo's, CUDA's and NCCL's."""

VERSIONS = ("python", "torch", "torchvision", "cuda", "hip", "cudnn", "nccl")


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: `sentence` says what was found, `remedy` what to do. `variants` are those concerned."""

    ok: bool
    name: str
    sentence: str
    remedy: str = ""
    variants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demand:
    """What one variant needs of a node. Sizes in bytes, counts for the whole node."""

    variant: str
    device: str
    strategy: str
    gpus: int
    ranks: int
    cores: int
    promised: bool
    workers: int
    batch_bytes: int
    nodes: int = 1
    backend: str = "none"
    tasks: int = 0
    cpu_seconds: float = 0.0
    """At the most, of one rank: its threads for as long as the launch may take."""

    @classmethod
    def of(cls, spec: LaunchSpec, sample_bytes: int) -> Demand:
        """Return what a launch needs. `sample_bytes` is one sample as the loader delivers it, target included."""
        devices = spec.gpus if spec.strategy == "dp" else spec.ranks_per_node
        needed = cores_needed(spec)
        return cls(
            variant=spec.variant,
            device=spec.device,
            strategy=spec.strategy,
            gpus=devices if spec.device == "cuda" else 0,
            ranks=spec.ranks_per_node,
            cores=needed,
            promised=needed <= spec.cores,
            workers=spec.workers * devices,
            batch_bytes=spec.batch_size * spec.devices_per_rank * sample_bytes,
            nodes=spec.nodes,
            backend=spec.backend,
            tasks=spec.ranks_per_node * TASKS_PER_RANK + needed,
            cpu_seconds=spec.threads * spec.time_limit_seconds,
        )


@dataclass(frozen=True)
class NodeFacts:
    """What a node has; None where that is not known or not limited.

    `port` is a free TCP port, or `port_problem` says why none is. `tasks_left` is how many processes and threads this
    user may still start, `locked_memory` in bytes, `cpu_seconds` of one process. `cards` are the stack's GPUs as their
    driver sees them now, before anything was launched. `versions` is what the worker's Python said of itself.
    """

    cores: int
    gpus: tuple[Mapping[str, Any], ...]
    shared_memory_free: int | None
    open_files: int | None
    port: int | None
    port_problem: str = ""
    tasks_left: int | None = None
    locked_memory: int | None = None
    cpu_seconds: int | None = None
    cards: tuple[GpuReading, ...] = ()
    versions: Mapping[str, Any] = field(default_factory=dict)


def collect(stack: Stack) -> NodeFacts:
    """Find out what this node has. Reads the node; the GPUs are those that the stack's own torch sees."""
    port, problem = free_port()
    try:
        shared: int | None = shared_memory_bytes()[1]
    except OSError:
        shared = None
    return NodeFacts(
        cores=cores_allowed(),
        gpus=tuple(stack.facts.get("gpus") or ()),
        shared_memory_free=shared,
        open_files=soft_limit(resource.RLIMIT_NOFILE),
        port=port,
        port_problem=problem,
        tasks_left=tasks_left(),
        locked_memory=soft_limit(resource.RLIMIT_MEMLOCK),
        cpu_seconds=soft_limit(resource.RLIMIT_CPU),
        cards=tuple(read_cards(stack)),
        versions={name: stack.facts.get(name) for name in VERSIONS},
    )


def check(demands: Iterable[Demand], facts: NodeFacts) -> list[Finding]:
    """Return the findings of all checks, for everything that is planned on this node."""
    planned = list({demand.variant: demand for demand in demands}.values())
    return [
        check_distinct_gpus(planned, facts),
        *check_gpu_count(planned, facts),
        *check_cores(planned, facts),
        *check_shared_memory(planned, facts),
        *check_open_files(planned, facts),
        *check_tasks(planned, facts),
        *check_cpu_time(planned, facts),
        *check_locked_memory(planned, facts),
        *check_free_cards(planned, facts),
        *check_versions(planned, facts),
        check_port(planned, facts),
    ]


def stopping(findings: Iterable[Finding], variant: str) -> Finding | None:
    """Return the first finding that forbids launches of `variant`, None if they may run."""
    return next((finding for finding in findings if not finding.ok and variant in finding.variants), None)


def check_distinct_gpus(planned: Sequence[Demand], facts: NodeFacts) -> Finding:
    """Two indices of one card would make two ranks share it, and neither would say so."""
    indices: defaultdict[str, list[Any]] = defaultdict(list)
    for place, gpu in enumerate(facts.gpus):
        if gpu.get("uuid"):
            indices[str(gpu["uuid"])].append(gpu.get("index", place))
    twice = {uuid: found for uuid, found in indices.items() if len(found) > 1}
    users = tuple(demand.variant for demand in planned if demand.gpus > 0)
    if twice:
        uuid, found = next(iter(twice.items()))
        numbers = " and ".join(map(str, found))
        return Finding(
            False,
            "distinct GPUs",
            f"GPUs {numbers} are the same card ({harmless(uuid)}).",
            "Look at CUDA_VISIBLE_DEVICES: it names a card twice.",
            users,
        )
    unknown = sum(1 for gpu in facts.gpus if not gpu.get("uuid"))
    if unknown:
        said = f"{unknown} of {len(facts.gpus)} GPUs give no UUID (torch before 2.4 has none)."
        return Finding(True, "distinct GPUs", said)
    if not facts.gpus:
        return Finding(True, "distinct GPUs", "No GPU is visible to the stack's torch.")
    return Finding(True, "distinct GPUs", f"{len(facts.gpus)} GPUs are visible, all different cards.")


def check_gpu_count(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """Each variant needs as many GPUs as it feeds."""
    lacking = [demand for demand in planned if demand.gpus > len(facts.gpus)]
    return [
        Finding(
            False,
            "GPUs",
            f"{demand.variant} needs {demand.gpus} GPUs, the stack's torch sees {len(facts.gpus)}.",
            "Ask for more GPUs, or look at CUDA_VISIBLE_DEVICES, the driver and whether this torch is built for GPUs.",
            (demand.variant,),
        )
        for demand in lacking
    ]


def check_cores(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """Threads and loader workers of a default variant must fit the cores; an explicit larger number runs, flagged."""
    name = "cores"
    findings = []
    for demand in planned:
        said = (
            f"{demand.variant} keeps {demand.cores} cores busy (threads of all ranks and loader workers), "
            f"{facts.cores} are allowed here"
        )
        users = (demand.variant,)
        if demand.cores > facts.cores and demand.promised:
            remedy = (
                "Ask for more cores (--cpus-per-task), and look for a binding that cuts them (taskset, srun)."
            )
            findings.append(Finding(False, name, f"{said}.", remedy, users))
        elif demand.cores > facts.cores:
            findings.append(Finding(True, name, f"{said}; it runs oversubscribed, not judged.", "", users))
    most = max((demand.cores for demand in planned), default=0)
    return findings or [Finding(True, name, f"{facts.cores} cores are allowed, at most {most} are needed.")]


def check_shared_memory(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """Batches travel from loader workers through /dev/shm; where it is full, a worker dies of SIGBUS."""
    name, free = "/dev/shm", facts.shared_memory_free
    if free is None:
        users = tuple(demand.variant for demand in planned if demand.workers > 0)
        said = "There is no /dev/shm, which loader workers pass batches through."
        return [Finding(not users, name, said, "Mount it (in a container: --shm-size or --ipc=host).", users)]
    findings = []
    for demand in planned:
        # A worker works on one batch more than it keeps ready.
        batches = PREFETCH + 1
        need = demand.workers * batches * demand.batch_bytes
        if need > free:
            said = (
                f"{demand.variant} needs {_mib(need)} of /dev/shm ({demand.workers} loader workers x {batches} batches "
                f"x {_mib(demand.batch_bytes)}), {_mib(free)} are free."
            )
            remedy = "Enlarge it (in a container: --shm-size or --ipc=host), clear it, or use fewer workers."
            findings.append(Finding(False, name, said, remedy, (demand.variant,)))
    return findings or [Finding(True, name, f"{_mib(free)} of /dev/shm are free, enough for every loader.")]


def check_open_files(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """Each tensor that waits in /dev/shm is an open file of its rank."""
    name, limit = "open files", facts.open_files
    findings = []
    for demand in planned:
        workers = demand.workers // max(1, demand.ranks)
        need = FILES_PER_RANK + workers * (FILES_PER_WORKER + (PREFETCH + 1) * TENSORS_PER_BATCH)
        if limit is not None and need > limit:
            said = f"A rank of {demand.variant} ({workers} loader workers) may open {need} files, allowed are {limit}."
            remedy = f"Raise it before the run: `ulimit -n {max(4096, need)}`."
            findings.append(Finding(False, name, said, remedy, (demand.variant,)))
    shown = "not limited" if limit is None else f"limited to {limit}"
    return findings or [Finding(True, name, f"Open files are {shown}, enough for every rank.")]


def check_tasks(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """Each thread counts against the user's limit of processes; a thread that can't start ends its rank."""
    left = facts.tasks_left
    return [
        Finding(
            False,
            "processes",
            f"{demand.variant} starts up to {demand.tasks} processes and threads, you may start {left} more.",
            "Raise the limit (`ulimit -u`), or end what else you run on this node.",
            (demand.variant,),
        )
        for demand in planned
        if left is not None and demand.tasks > left
    ]


def check_cpu_time(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """A limit of CPU seconds, as login nodes have it, kills a rank in the middle of its steps (SIGXCPU)."""
    limit = facts.cpu_seconds
    return [
        Finding(
            False,
            "CPU time",
            f"A rank of {demand.variant} may use {demand.cpu_seconds:.0f} s of CPU time, allowed are {limit}.",
            "Is this a login node? Run on a compute node, or raise the limit (`ulimit -t unlimited`).",
            (demand.variant,),
        )
        for demand in planned
        if limit is not None and demand.cpu_seconds > limit
    ]


def check_locked_memory(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """InfiniBand registers memory that must stay in place; with a low limit NCCL falls back to sockets or fails."""
    limit = facts.locked_memory
    return [
        Finding(
            False,
            "locked memory",
            f"{demand.variant} runs on {demand.nodes} nodes, and locked memory is limited to {_mib(limit)} here.",
            "Raise it there (`ulimit -l unlimited`); under Slurm: PropagateResourceLimitsExcept=MEMLOCK.",
            (demand.variant,),
        )
        for demand in planned
        if limit is not None and demand.nodes > 1 and demand.backend == "nccl"
    ]


def check_free_cards(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """What another process holds on a card now, it will compete for later."""
    users = tuple(demand.variant for demand in planned if demand.gpus > 0)
    findings = []
    for card in facts.cards:
        used = None if card.reserved_counted else card.memory_used_bytes
        busy = card.utilization_percent
        if used is not None and used > FOREIGN_BYTES:
            said = f"GPU {card.index} ({harmless(card.uuid)}) has {_mib(used)} in use before anything was launched"
            said += "." if busy is None else f", and is {busy:.0f} % busy."
            remedy = (
                "Another process is on it: find it (`nvidia-smi`), or ask for the card alone (--exclusive)."
            )
            findings.append(Finding(False, "free GPUs", said, remedy, users))
    if facts.cards and not findings:
        return [Finding(True, "free GPUs", f"Nobody else is on the {len(facts.cards)} GPUs.")]
    return findings


def check_versions(planned: Sequence[Demand], facts: NodeFacts) -> list[Finding]:
    """What the worker sees, so that a wrong module is seen before an hour of launches."""
    known = {name: version for name, version in facts.versions.items() if version}
    if not known:
        return []
    users = tuple(demand.variant for demand in planned if demand.backend == "nccl")
    if users and not known.get("nccl"):
        remedy = "Load a torch that is built with NCCL, or look at the stack that --stack names."
        return [Finding(False, "stack", "The stack's torch has no NCCL.", remedy, users)]
    said = ", ".join(f"{name} {harmless(str(version))}" for name, version in known.items())
    return [Finding(True, "stack", f"The worker sees {said}.")]


def check_port(planned: Sequence[Demand], facts: NodeFacts) -> Finding:
    """Torchrun and the ranks meet on a TCP port of the loopback."""
    if facts.port is not None:
        return Finding(True, "port", "A TCP port is free for the ranks to meet.")
    return Finding(
        False,
        "port",
        f"No TCP port can be opened on 127.0.0.1 ({harmless(facts.port_problem)}); the ranks of DDP can't meet.",
        "Look at `ip link show lo` and, where all are taken, at `ss -s`.",
        tuple(demand.variant for demand in planned if demand.strategy == "ddp"),
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
