"""A pytest plugin (``-p fake_stack``) that takes the place of the stack: launches return records at once.

What it pretends to be comes from the environment variable FAKE_STACK, a JSON object: `gpus`, `cores`, `steps` (part of
a member's id -> seconds a step), `fail` (part of a member's id -> message), `facts` (likewise -> what is known of the
failure), `invalid` (likewise -> reason), `changes` (part of a member's id -> fields of the record), `rates` (name ->
value, null: none), `host`, `takes` (seconds that a launch really takes), `deaf` (launches don't look at
CUDA_VISIBLE_DEVICES), `profiled` (whether watched launches say something), `stack_facts` (what the stack
says of itself), `old_facts` (what the old one of two says). FAKE_LOCKS is the folder of the node's locks. All else is
real.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import random
import time
import zlib
from pathlib import Path
from typing import Any

from perf import contract
from perf.launch import leases, lock, sharing
from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.preflight import NodeFacts
from perf.launch.stack import Stack
from perf.suite import launching, measuring, stacks
from perf.suite.feeding import batches_an_epoch
from perf.verdict.machine import RATES

SETTINGS: dict[str, Any] = json.loads(os.environ.get("FAKE_STACK", "{}"))
NOISE = 0.002
"""Standard deviation of the logarithm of a launch's step: quiet enough for 5 launches to decide."""


def _for(member: str, table: str, default: Any) -> Any:
    found = [value for part, value in SETTINGS.get(table, {}).items() if part in member]
    return found[-1] if found else default


def member_of(spec: contract.LaunchSpec) -> str:
    """Return the id of the member that a spec launches."""
    plan = "" if spec.plan == "window" else f"+{spec.plan}"
    return spec.variant + plan + (f"@{spec.side}" if spec.side else "")


def epochs_of(spec: contract.LaunchSpec, rank: int, seconds: float) -> list[contract.EpochRecord]:
    """Return what a healthy rank delivers in its epochs."""
    if spec.plan == "rates":
        return []
    samples = spec.epoch_samples or spec.train_samples
    mine = list(range(rank, samples, spec.world_size))
    epochs = []
    for index in range(max(1, spec.epochs)):
        whole = spec.plan != "window" and not (index and spec.later_epoch_batches)
        batches = batches_an_epoch(samples, spec.world_size, spec.batch_size) if whole else 64
        facts: dict[str, Any] = {}
        if spec.plan == "audit":
            bits = bytearray(-(-samples // 8))
            for sample in mine if whole else mine[: batches * spec.batch_size]:
                bits[sample // 8] |= 1 << sample % 8
            order = hashlib.sha256(f"{rank} {index}".encode()).hexdigest()
            facts = {
                "distinct": len(mine),
                "order": order,
                "seen": base64.b64encode(zlib.compress(bytes(bits))).decode(),
            }
        if spec.plan == "epochs":
            facts = {
                "validation_loss": 0.5,
                "validation_accuracy": 0.8,
                "validation_seconds": 1.0,
                "validation_samples": 1000,
            }
        took = seconds * batches * (1.2 if index == 0 else 1.0)
        count = len(mine) if whole else batches * spec.batch_size
        epochs.append(contract.EpochRecord(index, took, batches, count, whole, 0.1, **facts))
    return epochs


def rates_of(spec: contract.LaunchSpec, member: str) -> dict[str, contract.Rate]:
    """Return a card with every rate, 1e9 each but for what the settings say (`rates`: name -> value, null: none).

    `old_rates` are those that the old side of a comparison has instead.
    """
    values = dict.fromkeys(RATES[spec.strategy, spec.device], 1e9) | SETTINGS.get("rates", {})
    if spec.side == "old":
        values |= SETTINGS.get("old_rates", {})
    return {
        name: contract.Rate(value, "B/s", [value] * 3, 0.0)
        if value is not None
        else contract.Rate(None, "B/s", reason="the fake stack has none")
        for name, value in values.items()
        if name in RATES[spec.strategy, spec.device]
    }


def ddp_of(spec: contract.LaunchSpec) -> dict[str, Any]:
    """Return what DDP says of itself: two buckets, or one with a cap of 25 MB; silence under no_sync."""
    whole = 4 * spec.parameters
    buckets = [whole] if spec.bucket_cap_mb == 25 else [whole - 1024, 1024]
    buffers = spec.workload.startswith("resnet") and "nobuffers" not in spec.ddp_switches
    return {
        "bucket_bytes": buckets,
        "all_reduces": 0.0 if "nosync" in spec.ddp_switches else float(len(buckets)),
        "broadcasts": 2.0 if buffers else 0.0,
    }


def uuids_of(spec: contract.LaunchSpec, environ: dict[str, str]) -> list[list[str]]:
    """Return the cards of each rank as CUDA counts them: in the order of the variable, which need not be there."""
    if not spec.gpus:
        return [[] for _ in range(spec.world_size)]
    words = [] if SETTINGS.get("deaf") else environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    seen = [f"GPU-{word}" for word in words if word] or [f"GPU-{i}" for i in range(SETTINGS.get("gpus", 0))]
    if spec.strategy == "dp":
        return [seen[: spec.gpus]]
    return [[seen[rank % spec.ranks_per_node]] for rank in range(spec.world_size)]


def phases_of(member: str, seconds: float, rank: int, ranks: int) -> dict[str, list[float]]:
    """Return the phases of 64 steps: what the settings say (`phases`: part of a member's id -> one object a rank)."""
    told = _for(member, "phases", None)
    usual = {"data": 0.1, "copy": 0.0, "forward": 0.3, "backward": 0.5, "optimizer": 0.1}
    if ranks > 1:
        usual["communication"] = 0.05
    found = told[rank] if told else {name: share * seconds for name, share in usual.items()}
    # As the worker does, which names all of its phases: where nobody is to be waited for, with nothing in it.
    return {"communication": [], **{name: [float(value)] * 64 for name, value in found.items()}}


def profiles_of(spec: contract.LaunchSpec) -> list[str]:
    """Return the files of a line profile of every rank: empty ones."""
    names = [f"train-rank-{rank}.lprof" for rank in range(spec.world_size)]
    for name in names:
        with open(os.path.join(spec.out_dir, name), "wb"):
            pass
    return names


def launch(spec: contract.LaunchSpec, stack: Stack, **ignored: Any) -> contract.LaunchRecord:
    """Return a record as a healthy launch would give it, but for what the settings say."""
    member = member_of(spec)
    reason = _for(member, "unavailable", None)
    if reason:
        raise NotAvailable(reason)
    message = _for(member, "fail", None)
    if message:
        raise LaunchFailed(message, facts=_for(member, "facts", None))
    noise = random.Random(f"{member} {spec.round} {spec.escalation}").gauss(0.0, NOISE)
    seconds = float(_for(member, "steps", 0.01)) * (1.0 + noise)
    started = time.time()
    time.sleep(SETTINGS.get("takes", 0.0))
    ranks = spec.world_size
    uuids = uuids_of(spec, ignored.get("environ") or {})
    batch = spec.batch_size * spec.devices_per_rank
    steps = [seconds] * spec.timed_steps
    window = sum(steps)
    invalid = _for(member, "invalid", None)
    epochs = [epochs_of(spec, rank, seconds) for rank in range(ranks)]
    io = spec.mode == "io"
    record = contract.LaunchRecord(
        **{
            field.name: getattr(spec, field.name)
            for field in dataclasses.fields(contract.LaunchRecord)
            if hasattr(spec, field.name)
        }
        | {
            "started_at": started,
            "launch_seconds": time.time() - started if "takes" in SETTINGS else 3.0,
            "stack": {"torch": "0.0"},
            "data": {"kind": "generated"},
            "host": [SETTINGS.get("host", "fake")] * ranks,
            "device_names": ["fake"],
            "gpu_uuids": uuids,
            "step_seconds": [steps] * ranks,
            "median_step_seconds": seconds,
            "halves": [[seconds, seconds]] * ranks,
            "window_seconds": window,
            "window_seconds_per_rank": [window] * ranks,
            "samples": ranks * batch * len(steps),
            "samples_per_second": ranks * batch * len(steps) / window if window else 0.0,
            "wait_seconds": [0.0] * ranks,
            "total_steps": [64] * ranks,
            "loss_first": None if io else 2.0,
            "loss_last": None if io else 1.0,
            "losses_finite": None if io else True,
            "first_step_seconds": 0.2,
            "epoch_seconds": [max(rank[i].seconds for rank in epochs) for i in range(len(epochs[0]))],
            "epochs": epochs,
            "parameters_digests": [None if io else "same"] * ranks,
            "peak_memory_bytes": [
                {f"cuda:{rank + place}": 2**30 >> place for place in range(spec.devices_per_rank)}
                if spec.gpus
                else {}
                for rank in range(ranks)
            ],
            "reserved_memory_bytes": [{}] * ranks,
            "allocator_retries": 0,
            "effective": [
                {
                    "strategy": {"single": None, "dp": "DataParallel", "ddp": "DistributedDataParallel"}[
                        spec.strategy
                    ],
                    "world_size": ranks,
                    "backend": spec.backend,
                    "tf32": {"matmul": False, "convolution": False},
                    "activation_dtype": "float32",
                    "threads": spec.threads,
                    "loader": {"workers": spec.workers * spec.devices_per_rank, "loader": spec.loader},
                    "channels_last": {"weights": "channels_last" in spec.optimizations},
                    "non_blocking": {"in_force": "non_blocking" in spec.optimizations},
                    "optimizer_flags": {"fused": "fused" in spec.optimizations},
                    "compiled": {"frames": int("compile" in spec.optimizations)},
                    "cuda_graph": {"replays": 9} if "cuda_graph" in spec.optimizations else None,
                    "cudnn_benchmark": "autotune" in spec.optimizations,
                    "first_batch": {"sample": f"rank {rank}"},
                    **({"ddp": ddp_of(spec)} if spec.strategy == "ddp" else {}),
                }
                for rank in range(ranks)
            ],
            "threads": [
                {
                    "torch": spec.threads,
                    "core_ids": list(range(spec.tied_cores)) or sorted(os.sched_getaffinity(0)),
                }
            ]
            * ranks,
            "startup_seconds": [{"imports": 2.0, "process_group": 0.0, "until_warm_up": 0.5}] * ranks,
            "telemetry": {"transports": {"P2P": 2}} if spec.backend == "nccl" else {},
            "valid": invalid is None,
            "reasons": [] if invalid is None else [invalid],
            "phase_seconds": [phases_of(member, seconds, rank, ranks) for rank in range(ranks)]
            if spec.phases
            else None,
            "line_profiles": profiles_of(spec) if spec.line_profile else [],
        }
        | (
            {
                "step_seconds": [[]] * ranks,
                "median_step_seconds": 0.0,
                "samples": 0,
                "samples_per_second": 0.0,
                "rates": rates_of(spec, member),
            }
            if spec.plan == "rates"
            else {}
        )
    )
    record = dataclasses.replace(record, **watched_of(spec, seconds))
    return dataclasses.replace(record, **_for(member, "changes", {}))


def watched_of(spec: contract.LaunchSpec, seconds: float) -> dict[str, Any]:
    """Return what is seen of a watched launch, where the settings say `profiled`: backward takes what is over 6 ms."""
    found: dict[str, Any] = {}
    if SETTINGS.get("profiled") and spec.phases:
        found["phase_seconds"] = [{"forward": [0.006], "backward": [round(seconds, 4) - 0.006]}]
    if SETTINGS.get("profiled") and spec.watch_operators:
        taken = round(seconds, 4) - 0.007
        found["operators"] = [{"aten::convolution_backward": contract.Operator(2.0, taken, 0.0)}]
    return found


def find_stack(option: str | None, *ignored: Any, **also: Any) -> Stack:
    """Return a stack that has what the settings say."""
    words = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    words = words or [str(number) for number in range(SETTINGS.get("gpus", 0))]
    gpus = [{"index": i, "name": "fake", "uuid": f"GPU-{word}"} for i, word in enumerate(words)]
    facts = {
        "python": "3.9.0",
        "torch": "0.0",
        "torchvision": "0.0",
        "gpus": gpus,
        "nccl": "2" if gpus else None,
        **SETTINGS.get("stack_facts", {}),
    }
    if option == "old/python":
        facts |= SETTINGS.get("old_facts", {})
    return Stack("fake", "python3", facts)


class NoServers:
    """What launches would be forked from: the fake ones start no process."""

    def __init__(self, *ignored: Any) -> None:
        pass

    def why_not(self, stack: Stack) -> str | None:
        """Every stack can be forked."""

    def serves(self, *ignored: Any) -> bool:
        """They are there already."""
        return True

    def start(self, *ignored: Any) -> float:
        """It was there already."""
        return 0.0

    def close(self) -> None:
        """Nothing to end."""


launching.launch = launch
launching.Servers = NoServers
stacks.find_stack = find_stack
stacks.cores_allowed = lambda: SETTINGS.get("cores", 2)
measuring.collect = lambda stack: NodeFacts(
    SETTINGS.get("cores", 2), tuple(stack.facts["gpus"]), 2**30, 4096, 1
)
if "FAKE_LOCKS" in os.environ:
    for module in (leases, lock, sharing):
        vars(module)["lock_folder"] = lambda: Path(os.environ["FAKE_LOCKS"])
