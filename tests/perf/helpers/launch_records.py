"""Launch records for unit tests of the suite."""

from __future__ import annotations

import dataclasses

from perf import contract
from perf.catalogue import GROUPS, Member


def spec_of(member: Member, launch: str = "main-0001") -> contract.LaunchSpec:
    """Return a spec of a member, as the plan builds it for two cores."""
    from pathlib import Path

    from perf.profiles import PROFILES
    from perf.suite.plan import Context, build_spec

    context = Context("run", PROFILES["quick"], 2, "/cache", None)
    return build_spec(context, member, launch=launch, round_number=0, out_dir=Path("/out"))


def record_of(member: Member, seconds: float = 0.01, **changes: object) -> contract.LaunchRecord:
    """Return a healthy launch of a member with that median step."""
    spec = spec_of(member)
    known = {
        f.name: getattr(spec, f.name)
        for f in dataclasses.fields(contract.LaunchRecord)
        if hasattr(spec, f.name)
    }
    rest: dict[str, object] = {
        "started_at": 0.0,
        "launch_seconds": 3.0,
        "stack": {},
        "data": {},
        "host": ["n1"],
        "device_names": ["cpu"],
        "gpu_uuids": [[]],
        "step_seconds": [[seconds] * 10],
        "median_step_seconds": seconds,
        "halves": [[seconds, seconds]],
        "window_seconds": 10 * seconds,
        "window_seconds_per_rank": [10 * seconds],
        "samples": 640,
        "samples_per_second": 64 / seconds,
        "wait_seconds": [0.0],
        "total_steps": [30],
        "loss_first": 2.0,
        "loss_last": 1.0,
        "losses_finite": True,
        "first_step_seconds": 0.1,
        "epoch_seconds": [1.2, 1.0],
        "epochs": [[]],
        "parameters_digests": ["d"],
        "peak_memory_bytes": [{}],
        "reserved_memory_bytes": [{}],
        "allocator_retries": 0,
        "effective": [{}],
        "threads": [{}],
        "startup_seconds": [{}],
        "telemetry": {},
        "valid": True,
        "reasons": [],
        "phase_seconds": None,
        "line_profiles": [],
    }
    return contract.LaunchRecord(**{**known, **rest, **changes})  # type: ignore[arg-type]


PAIR_GROUP = GROUPS["ddp@mnist_cnn-cpu"]
"""A group of three members: one process, DDP on one rank, DDP on two."""


def record(**changes: object) -> contract.LaunchRecord:
    """Return a healthy launch of one process on the CPU, with these fields."""
    return record_of(PAIR_GROUP.members[0], **changes)  # type: ignore[arg-type]
