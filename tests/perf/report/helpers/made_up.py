"""Runs that never took place, for tests, pictures in the docs and the benchmark: real rules, made-up step times.

The members are the catalogue's, the verdicts are what the suite's own judge says of the made-up launches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import random
from pathlib import Path

from perf import contract, records
from perf.catalogue import GROUPS, Member, Pair
from perf.launch.cause import find_cause
from perf.launch.evidence import GOOD, Evidence, RankEvidence
from perf.launch.failure import describe, facts
from perf.limits import LOADER_SHARE, Limit
from perf.profiles import PROFILES
from perf.suite.judge import Judge
from perf.suite.kept import Stored
from perf.suite.outcomes import LimitMissed, Unproven
from perf.suite.plan import Context, build_spec
from perf.verdict.known import Library
from perf.verdict.system import NO_GPU, System

STARTED = 1_795_000_000.0
HOST = "node042"
STACK = {
    "python": "3.12.3",
    "torch": "2.11.0+cu130",
    "torchvision": "0.26.0+cu130",
    "cuda": "13.0",
    "cudnn": 91900,
    "nccl": "2.28.9",
}
CARD = "NVIDIA H100 80GB HBM3"
UUIDS = ("5fa5c891-6bb8-9680-0613-526506556163", "98886441-b61b-af1c-6fec-444c75caeb21")

_SECONDS = {"mnist_cnn": 0.002, "resnet50": 0.045, "resnet152": 0.11, "unet3d": 0.19}
_FASTER = {"tf32": 0.8, "fp16": 0.52, "bf16": 0.5, "compile": 0.86, "fused": 0.97, "cuda_graph": 0.9}
_MODES = {"full": 1.25, "synthetic": 1.0, "io": 0.6}
_STRATEGIES = {"single": 1.0, "ddp": 1.12, "dp": 2.6}


def step_of(member: Member) -> float:
    """Return a step time in seconds that such a variant could have."""
    variant = member.variant
    seconds = next(s for name, s in _SECONDS.items() if variant.workload.startswith(name))
    seconds *= (
        _MODES[variant.mode] * _STRATEGIES[variant.strategy] * (1.0 if variant.device == "cuda" else 20.0)
    )
    for word in (variant.precision, *variant.optimizations):
        seconds *= _FASTER.get(word, 1.0)
    if variant.mode == "full" and variant.workers:
        seconds *= 1.0 + 1.8 / variant.workers
    return seconds


def record_of(
    member: Member,
    number: int,
    seconds: float,
    *,
    run: str,
    steps: int = 400,
    spread: float = 0.008,
    **changes,
) -> contract.LaunchRecord:
    """Return one launch of a member whose median step is about `seconds`."""
    chance = random.Random(f"{member.id} {member.group} {number} {run}")
    context = Context(run, PROFILES["quick"], 32, "/cache", None)
    launch = f"main-{number:04d}"
    spec = build_spec(context, member, launch=launch, round_number=number, out_dir=Path("/out"))
    seconds *= math.exp(chance.gauss(0.0, spread))
    ranks = spec.world_size
    traces = [
        [
            round(seconds * math.exp(chance.gauss(0.0, 0.05)) * (2.2 if chance.random() < 0.004 else 1.0), 7)
            for _ in range(steps)
        ]
        for _ in range(ranks)
    ]
    medians = [sorted(trace)[steps // 2] for trace in traces]
    windows = [sum(trace) for trace in traces]
    samples = ranks * steps * spec.batch_size * spec.devices_per_rank
    wait = 0.2 if member.variant.mode == "full" else 0.002
    cuda = member.variant.device == "cuda"
    epochs = [
        contract.EpochRecord(
            index,
            seconds * 938 * (1.2 if index == 0 else 1.0),
            938,
            60_032,
            True,
            0.4,
            0.3 - 0.1 * index,
            0.9,
            1.1,
            10_000,
        )
        for index in range(3 if member.plan == "epochs" else 0)
    ]
    same = {f.name for f in dataclasses.fields(contract.LaunchRecord)} & {
        f.name for f in dataclasses.fields(spec)
    }
    fields = {name: getattr(spec, name) for name in same} | {
        "started_at": STARTED + 20.0 * number,
        "launch_seconds": 14.0 + sum(windows) / ranks,
        "stack": STACK,
        "data": {"kind": "generated", "description": "generated digits", "samples": 60000},
        "host": [HOST] * ranks,
        "device_names": [CARD if cuda else "cpu"] * ranks,
        "gpu_uuids": [[UUIDS[rank % 2]] if cuda else [] for rank in range(ranks)],
        "step_seconds": traces,
        "median_step_seconds": max(medians),
        "halves": [[median, median] for median in medians],
        "window_seconds": max(windows),
        "window_seconds_per_rank": windows,
        "samples": samples,
        "samples_per_second": samples / max(windows),
        "wait_seconds": [wait * window for window in windows],
        "total_steps": [steps + spec.warmup_steps] * ranks,
        "loss_first": 2.3,
        "loss_last": 0.4,
        "losses_finite": True,
        "first_step_seconds": 0.4,
        "epoch_seconds": [epoch.seconds for epoch in epochs],
        "epochs": [epochs] * ranks,
        "parameters_digests": ["d"] * ranks,
        "peak_memory_bytes": [{f"cuda:{rank}": int(seconds * 9e10)} if cuda else {} for rank in range(ranks)],
        "reserved_memory_bytes": [{}] * ranks,
        "allocator_retries": 0,
        "effective": [{}] * ranks,
        "threads": [{}] * ranks,
        "startup_seconds": [{"interpreter": 0.1, "imports": 5.5, "process_group": 1.0, "until_warm_up": 1.4}]
        * ranks,
        "telemetry": {},
        "valid": True,
        "reasons": [],
        "phase_seconds": None,
        "line_profiles": [],
    }
    return contract.LaunchRecord(**(fields | changes))


def launches(groups, *, run: str, count: int = 5, steps: int = 400, slower: dict[str, float] | None = None):
    """Return interleaved launches of all members of some groups; `slower` has factors by part of a member's id."""
    found = []
    for name in groups:
        for _ in range(count):
            for member in GROUPS[name].members:
                factor = math.prod(f for part, f in (slower or {}).items() if part in member.id)
                found.append(
                    record_of(member, len(found) + 1, step_of(member) * factor, run=run, steps=steps)
                )
    return found


def judged(
    found: list[contract.LaunchRecord], *, run: str, ddp_limit: float = 1.7
) -> list[records.VerdictRecord]:
    """Return what the suite's own judge says of these launches."""
    source, verdicts = Stored(found, "made up"), []
    for group in GROUPS.values():
        if not any(record.group == group.name for record in found):
            continue
        members = {member.variant.mode: member for member in group.members}
        if group.question == "loader":
            test, question = "test_loader_share_is_within_its_limit", None
        elif group.question == "ddp":
            single, one = group.member("single"), group.member("ddp", count=1)
            test, question = "test_ddp_overhead_at_world_size_1", Pair(group, one, single)
        elif group.question == "ladder":
            pair = Pair(group, group.members[1], group.members[0])
            test, question = "test_a_rung_makes_nothing_slower", pair
        else:
            continue
        judge = Judge(
            source,
            f"{test}[{group.name}-1]",
            PROFILES["quick"],
            run,
            verdicts.append,
            library=Library([], System(NO_GPU, 0), "2026-11-28"),
            require_references=False,
        )
        with contextlib.suppress(LimitMissed, Unproven):
            if question is None:
                judge.share(members["full"], members["synthetic"], LOADER_SHARE)
            else:
                limit = Limit(
                    "ddp_overhead" if group.question == "ddp" else "rung", ddp_limit, "ratio", "made up"
                )
                judge.ratio(question, limit, can_be_faster=True)
    return verdicts


def killed_rank(folder: Path, member: Member) -> records.Event:
    """Return the event of a launch whose rank 1 was killed, as the launcher tells it, and leave its log."""
    launch = "main-0099"
    log = folder / "launches" / launch / "logs" / "0" / "attempt_0" / "1" / "stderr.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        f"[rank1]: loading {member.variant.workload}",
        "[rank1]: cudaMallocAsync: 12.4 GiB of pinned host memory asked for",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0",
    )
    log.write_text("\n".join(lines) + "\n")
    evidence = Evidence(
        launch=launch,
        variant=member.id,
        host=HOST,
        direct=False,
        time_limit=600.0,
        agent_exit=1,
        out_dir=str(folder / "launches" / launch),
        ranks=(
            RankEvidence(
                0, exit_code=-15, ended_by_us=True, phase="window", record="missing", gpus=(UUIDS[0],)
            ),
            RankEvidence(
                1, exit_code=-9, ended_at=5.0, phase="window", log=lines, log_path=str(log), gpus=(UUIDS[1],)
            ),
        ),
    )
    assert evidence.ranks[0].record != GOOD
    cause = find_cause(evidence)
    return records.Event(
        "failed",
        STARTED + 900.0,
        group=member.group,
        member=member.id,
        launch=launch,
        number=1,
        total=5,
        text=describe(evidence, cause),
        failure=facts(evidence, cause),
    )


def sample_lines(record: contract.LaunchRecord) -> str:
    """Return what a sampler would have written beside a launch, once a second."""
    chance = random.Random(record.launch)
    lines = [json.dumps({"host": HOST, "interval_seconds": 1.0, "source": "nvml"})]
    for second in range(int(record.launch_seconds)):
        busy = 4 < second < record.launch_seconds - 2
        gpus = [
            {
                "index": place,
                "uuid": uuid,
                "power_watts": chance.gauss(420, 12) if busy else chance.gauss(95, 3),
                "sm_clock_mhz": 1980.0 if busy else 345.0,
                "utilization_percent": min(100.0, chance.gauss(93, 4)) if busy else 0.0,
                "temperature_celsius": 45.0 + (second if busy else 0),
            }
            for place, uuid in enumerate(UUIDS)
        ]
        lines.append(
            json.dumps({"time": record.started_at + second, "why": "tick", "host": {}, "gpus": gpus})
        )
    return "\n".join(lines) + "\n"


def write_run(
    folder: Path,
    found: list[contract.LaunchRecord],
    verdicts: list[records.VerdictRecord],
    *,
    outcomes: list[records.OutcomeRecord] = (),
    events: list[records.Event] = (),
    sampled: bool = False,
    environment: dict | None = None,
) -> Path:
    """Write the files of a run. Not through `Run.append`, which syncs each line: with thousands that takes minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        (records.RECORDS, found),
        (records.VERDICTS, verdicts),
        (records.TESTS, outcomes),
        (records.EVENTS, events),
    ):
        (folder / name).write_text("".join(contract.encode(line) + "\n" for line in lines), encoding="utf-8")
    gpus = [
        {"index": i, "name": CARD, "uuid": uuid, "memory_bytes": 85017493504} for i, uuid in enumerate(UUIDS)
    ]
    known = {
        "system": "Linux",
        "host": HOST,
        "cores": 64,
        "cores_allowed": 32,
        "stack": {**STACK, "gpus": gpus},
    }
    (folder / records.ENVIRONMENT).write_text(json.dumps(environment or known), encoding="utf-8")
    for record in found if sampled else []:
        place = folder / "launches" / record.launch
        place.mkdir(parents=True, exist_ok=True)
        (place / "telemetry.jsonl").write_text(sample_lines(record), encoding="utf-8")
    return folder


def failing_run(folder: Path) -> Path:
    """Write a run in which a loader is starved, DDP is slow, an exact fact is wrong and a rank was killed."""
    run, groups = (
        folder.name,
        ["loader@resnet50-gpu", "ddp@resnet50-gpu", "dp@resnet50-gpu", "epochs@resnet50-gpu"],
    )
    groups += ["workers@resnet50-gpu", "ladder@resnet50-gpu"]
    slower = {"resnet50-single-1gpu-fp32-native": 1.0, "ddp-1gpu": 1.9}
    found = launches(groups, run=run, count=10, slower=slower)
    starved = [
        dataclasses.replace(
            record,
            step_seconds=[[3.1 * s for s in rank] for rank in record.step_seconds],
            median_step_seconds=3.1 * record.median_step_seconds,
            samples_per_second=record.samples_per_second / 3.1,
            window_seconds=3.1 * record.window_seconds,
            window_seconds_per_rank=[3.1 * w for w in record.window_seconds_per_rank],
            wait_seconds=[2.2 * w for w in record.window_seconds_per_rank],
        )
        if record.group == "loader@resnet50-gpu" and record.mode == "full"
        else record
        for record in found
    ]
    outcomes = [
        records.OutcomeRecord(
            "perf/test_ddp.py::test_ranks_are_disjoint[resnet50-ddp-2gpu-nccl-fp32-native-io+audit]",
            "failed",
            "",
            1.2,
            "AssertionError: ranks 0 and 1 share 1,250 samples of epoch 1; expected none",
        ),
        records.OutcomeRecord(
            "perf/test_throughput.py::test_throughput_is_not_below_its_floor[resnet50-ddp-4gpu-nccl-fp32-native]",
            "skipped",
            "",
            0.0,
            "needs 4 GPUs, 2 here",
        ),
    ]
    member = next(m for m in GROUPS["dp@resnet50-gpu"].members if m.variant.strategy == "ddp")
    verdicts = judged(starved, run=run)
    return write_run(
        folder, starved, verdicts, outcomes=outcomes, events=[killed_rank(folder, member)], sampled=True
    )


def many_variants(folder: Path, variants: int, *, count: int = 5, steps: int = 400) -> Path:
    """Write a run with so many variants: the catalogue's on GPUs, again and again under other names."""
    names = [
        name
        for name, group in GROUPS.items()
        # What measures the machine trains nothing: it has no steps to make up.
        if group.members[0].variant.device == "cuda" and all(m.plan != "rates" for m in group.members)
    ]
    found: list[contract.LaunchRecord] = []
    seen: set[str] = set()
    turn = 0
    while len(seen) < variants:
        for name in names:
            for record in launches([name], run=folder.name, count=count, steps=steps):
                copy = f"{record.variant}-b{turn}" if turn else record.variant
                key = f"{record.group} {copy} {record.plan}"
                if key in seen or len(seen) < variants:
                    seen.add(key)
                    launch = f"main-{len(found) + 1:05d}"
                    group = f"{record.group}{turn}" if turn else record.group
                    found.append(dataclasses.replace(record, variant=copy, group=group, launch=launch))
        turn += 1
    verdicts = judged(
        [record for record in found if not record.variant[-3:].startswith("-b")], run=folder.name
    )
    return write_run(folder, found, verdicts)
