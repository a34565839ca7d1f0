"""Which launches a group takes, in which order, and what each is asked to do. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from perf import contract
from perf.catalogue import Group, Member
from perf.profiles import Profile
from perf.suite.feeding import batch_of, epoch_samples, share_for, validation_samples
from perf.variants import Variant
from perf.verdict.stalls import STALL_STEPS
from perf.workloads import MACHINE, SUBJECTS

T = TypeVar("T")

OF_THE_LOOP = ("fused", "compile", "autotune")
"""Optimizations that leave the tutorials' loop as it is, as the worker has it."""

FIRST_SEED = 1000
"""Seed of round 0. Members of one round share a seed, so that they train on the same batches."""

_PAIR_ORDERS = ((0, 1), (1, 0))
_TRIPLE_ORDERS = ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 0, 2))
"""Balanced orders: over the cycle every member stands at every place equally often (drift then hits all alike)."""

OPERATOR_STEPS = 24
"""Steps that torch's profiler watches. It sees some 5,000 events in a step of resnet50, and told them apart for 60 s
where a window had 100 steps; an operator's time is a mean over them, and never judged."""


@dataclass(frozen=True)
class Context:
    """What is the same for every launch of a run."""

    run: str
    profile: Profile
    cores: int
    cache_dir: str
    data_root: str | None
    time_limit_seconds: float | None = None
    save_model: bool = False
    numa: bool = False
    devices: int | None = None
    """GPUs of a node, where GPUs are measured; None where nobody counts."""
    whole_warm_up: bool = False
    """Whether no warm-up is shortened: a fault that is planted takes the length of a step in it."""


def order_of_round(members: Sequence[T], round_number: int) -> list[T]:
    """Return the members in the order in which a round launches them.

    Two members alternate (ABBA), three follow six balanced orders, more are rotated by one place every two rounds
    and reversed in every other one.
    """
    count = len(members)
    if count == 2:
        places: Sequence[int] = _PAIR_ORDERS[round_number % 2]
    elif count == 3:
        places = _TRIPLE_ORDERS[round_number % 6]
    else:
        places = [(i + round_number // 2) % count for i in range(count)]
        if round_number % 2:
            places = places[::-1]
    return [members[i] for i in places]


def launches_planned(group: Group, profile: Profile) -> int:
    """Return how many launches each member of a group gets before any look asks for more."""
    if group.once and not profile.asked:
        return 1
    accepted = group.smoke_judged if profile.name == "smoke" else "quick" in group.profiles
    return profile.launches if group.judged and (profile.judge_all or accepted) else 1


def build_spec(
    context: Context,
    member: Member,
    *,
    launch: str,
    round_number: int,
    out_dir: Path,
    escalation: str = "",
    phases: bool = False,
    line_profile: bool = False,
    operators: bool = False,
    trace: str = "",
) -> contract.LaunchSpec:
    """Return the spec of one launch of a member."""
    variant = member.variant
    workload = SUBJECTS[variant.workload]
    sizes = context.profile.sizes_for(variant.device, member.plan)
    share = share_for(member, context.profile, context.cores, context.devices)
    # On a CPU 400 steps would take half a minute.
    profile = context.profile
    watched = profile.stalls and (profile.every_stall or workload.stalls) and variant.device == "cuda"
    stalls = watched and member.plan == "window"
    timed_steps, min_seconds, max_seconds = sizes.timed_steps, sizes.min_seconds, sizes.max_seconds
    if operators:
        timed_steps, min_seconds, max_seconds = min(timed_steps, OPERATOR_STEPS), 0.0, 0.0
    elif stalls:
        # A share of slow steps needs all of its steps.
        timed_steps, max_seconds = max(timed_steps, STALL_STEPS), 0.0
    return contract.LaunchSpec(
        run=context.run,
        launch=launch,
        variant=variant.id,
        group=member.group,
        round=round_number,
        workload=variant.workload,
        strategy=variant.strategy,
        device=variant.device,
        backend=variant.backend,
        nodes=variant.nodes,
        ranks_per_node=variant.ranks_per_node,
        gpus=variant.gpus,
        precision=variant.precision,
        loader=variant.loader,
        mode=variant.mode,
        plan=member.plan,
        batch_size=batch_of(variant, sizes),
        workers=share.workers,
        workers_held=share.held,
        threads=share.threads,
        cores=share.cores * variant.ranks_per_node,
        seed=FIRST_SEED + round_number,
        warmup_steps=sizes.warmup_steps,
        timed_steps=timed_steps,
        min_seconds=min_seconds,
        max_seconds=max_seconds,
        # A trace is of steps behind the whole warm-up.
        warmup_seconds=0.0 if trace or context.whole_warm_up else sizes.warmup_seconds,
        epochs=sizes.epochs,
        cache_dir=context.cache_dir,
        out_dir=str(out_dir),
        time_limit_seconds=context.time_limit_seconds or context.profile.time_limit_seconds,
        parameters=workload.parameters,
        train_samples=workload.train_samples,
        validation_samples=workload.validation_samples,
        epoch_samples=epoch_samples(member, sizes),
        later_epoch_batches=sizes.later_epoch_batches,
        validate_samples=validation_samples(member, sizes),
        data_root=context.data_root,
        phases=phases,
        line_profile=line_profile,
        watch_operators=operators,
        escalation=escalation,
        optimizations=list(variant.optimizations),
        optimizer=variant.optimizer,
        schedule=variant.schedule,
        persistent=variant.persistent,
        prefetch=variant.prefetch,
        pin_memory=variant.pin_memory,
        save_model=context.save_model and member.plan not in ("audit", "rates"),  # these train nothing
        side=member.side,
        numa=context.numa,
        tied_cores=variant.cores or 0,
        bucket_cap_mb=variant.bucket_cap_mb,
        ddp_switches=list(variant.ddp_switches),
        trace=trace,
        rate_rule=variant.rate_rule,
        rate_warmup=variant.rate_warmup,
        rate_base_batch=workload.batch_size,
    )


def has_phases(variant: Variant) -> bool:
    """Say whether a variant's steps can be timed phase by phase: a CUDA graph replays them as one piece."""
    return variant.mode != "io" and variant.workload != MACHINE and "cuda_graph" not in variant.optimizations


NO_EXTRA = (
    "line profiles and traces are of the tutorials' loop, and mixed precision, another memory format and a CUDA graph "
    "train in a step of their own; a CUDA graph has no phases, since it is replayed as one piece"
)
"""Why some variants have no launch for a profile."""


def takes_extra(variant: Variant, extra: str) -> bool:
    """Say whether a variant has launches for a profile (see `perf.suite.options.EXTRAS`)."""
    return has_phases(variant) if extra == "phases" else in_the_tutorials_loop(variant)


def in_the_tutorials_loop(variant: Variant) -> bool:
    """Say whether a variant trains in the loop that traces and line profiles are of (`perf.training.epochs`)."""
    own_step = variant.precision in ("fp16", "bf16") or not {*variant.optimizations} <= {*OF_THE_LOOP}
    return variant.mode != "io" and variant.workload != MACHINE and not own_step
