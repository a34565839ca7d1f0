"""Whether a launch measured what it should: facts that make it invalid, each a plain sentence with its numbers. Pure.

Only facts about the machine and the record count here, never how fast the launch was: throwing away slow launches
would throw away the regressions that are looked for. Those about the machine alone (`unfit_of`) are no property of
the stack, so such a launch is replaced.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perf.contract import LaunchSpec, RankRecord
from perf.launch.machine_facts import unfit_by_telemetry
from perf.verdict.steady import is_unsteady

WINDOW_TOLERANCE = 0.01
"""Of the window. Steps that don't add up to their window were not all of its time, or not timed by the same clock."""

EDGE_SECONDS = 0.0005
"""What opening and closing a stretch of the window may cost beside its steps: a synchronize of each device. A window
is interrupted where an epoch ends inside it, so it has at most one stretch an epoch."""

OVERSUBSCRIBED = "oversubscribed"

IDLE_CORES = "idle cores"

CROWDED = "crowded"

CROWDED_SHARE = 0.1
"""Of the window, in which processes waited for a core, and of the time of the cores that a launch needs, which others
took. Where another benchmark held 1.4 of two cores these were 0.6 and 0.7, and a step took 1.7 times as long; beside
an editor they were 0.01 and 0.02."""

UNSTEADY = "unsteady"

CLOCK_SECONDS = 0.25
"""Between reading two clocks at each end of a stretch a rank may lose its core for a while. NTP corrects less than
0.128 s by running the clock faster or slower, and only more than that by a step."""

IDLE_SHARE = 0.5
"""Of the cores promised. Source 004's script asked for 4, 8 and 10 cores and always started 4 loader workers: fewer
than half of the cores in use is a number of workers that somebody wrote down once."""

STACK_KEYS = ("python", "torch", "torchvision", "cuda", "hip", "cudnn", "nccl")


def reasons_of(
    spec: LaunchSpec, ranks: Sequence[RankRecord], stack: Mapping[str, Any] | None = None
) -> list[str]:
    """Return why this launch is not fit to be judged, one sentence a reason; empty if it is fit.

    `stack` is what the stack said of itself before (its probe); None where nobody asked.
    """
    return [
        *_unreadable_numbers(ranks),
        *_windows(spec, ranks),
        *_retries(ranks),
        *_unlike_ranks(ranks),
        *_rank_order(spec, ranks),
        *_other_stack(ranks, stack or {}),
    ]


def unfit_of(
    spec: LaunchSpec, ranks: Sequence[RankRecord], telemetry: Mapping[str, Any] | None = None
) -> list[str]:
    """Return why the machine was not fit for this launch, one sentence a reason: bound wrongly, shared or throttled."""
    return [
        *_shared_gpus(ranks),
        *_fewer_cores(spec, ranks),
        *_clock_steps(ranks),
        *unfit_by_telemetry(telemetry or {}),
    ]


def flags_of(
    spec: LaunchSpec, ranks: Sequence[RankRecord], telemetry: Mapping[str, Any] | None = None
) -> list[str]:
    """Return what is to be said of the launch beside its validity, in a word or two each.

    ``oversubscribed`` and ``idle cores`` for what it was given, ``crowded`` where others took cores that it needed,
    ``unsteady`` where its steps changed meanwhile.
    """
    cores = _cores_in_words(spec, ranks)
    # Who takes more cores than there are waits for them by its own doing.
    crowded = [CROWDED] if OVERSUBSCRIBED not in cores and _is_crowded(spec, telemetry or {}) else []
    unsteady = [UNSTEADY] if any(is_unsteady(rank.step_seconds) for rank in ranks) else []
    return [*cores, *crowded, *unsteady]


def _is_crowded(spec: LaunchSpec, telemetry: Mapping[str, Any]) -> bool:
    """Whether others took cores of a node while somebody waited for one; what is not known speaks against nobody."""
    window = telemetry.get("window_seconds") or 0.0
    for node in telemetry.get("nodes") or ():
        others, waited = node.get("other_cpu_seconds"), (node.get("pressure_seconds") or {}).get("cpu")
        if others is None or waited is None:
            continue
        if waited > CROWDED_SHARE * window and others > CROWDED_SHARE * window * cores_needed(spec):
            return True
    return False


def _cores_in_words(spec: LaunchSpec, ranks: Sequence[RankRecord]) -> list[str]:
    allowed = cores_by_host(ranks)
    if not allowed:
        return []
    # By what was promised: who may use less than that was bound wrongly, which makes the launch invalid. The promise
    # knows a container's quota too, which no rank sees in its affinity.
    cores, needed = min(spec.cores, *allowed.values()), cores_needed(spec)
    if needed > spec.cores:
        return [OVERSUBSCRIBED]
    if spec.plan == "rates":
        return []  # on a GPU the host has next to nothing to do, and says how fast one core does it
    idle = needed < IDLE_SHARE * cores and not spec.workers_held
    return [IDLE_CORES] if idle else []


def cores_needed(spec: LaunchSpec) -> int:
    """Return the cores that a launch keeps busy on one node: the threads of all ranks and all loader workers."""
    devices = spec.gpus if spec.strategy == "dp" else spec.ranks_per_node
    return spec.threads * spec.ranks_per_node + spec.workers * devices


def cores_by_host(ranks: Sequence[RankRecord]) -> dict[str, int]:
    """Return how many cores the ranks of each host may use together.

    Where ranks are bound to cores of their own they say which (``core_ids``), and those of a host are joined. Else
    they share the host's, of which each knows the number.
    """
    counts: dict[str, int] = {}
    ids: defaultdict[str, set[int]] = defaultdict(set)
    for rank in ranks:
        allowed = rank.threads.get("cores_allowed")
        if isinstance(allowed, int):
            counts[rank.host] = max(allowed, counts.get(rank.host, 0))
        core_ids = rank.threads.get("core_ids")
        if isinstance(core_ids, list):
            ids[rank.host].update(core_ids)
    return {host: max(count, len(ids[host])) for host, count in counts.items()}


def _windows(spec: LaunchSpec, ranks: Sequence[RankRecord]) -> Iterator[str]:
    for rank in ranks:
        steps, window = math.fsum(rank.step_seconds), rank.window_seconds
        if not rank.step_seconds:
            if spec.timed_steps > 0:
                yield f"Rank {rank.rank} timed no step; {spec.timed_steps} were asked for."
            continue
        if not (math.isfinite(steps) and math.isfinite(window)):
            continue
        if window <= 0 or min(rank.step_seconds) < 0:
            yield (
                f"Rank {rank.rank} has a window of {window:g} s and a shortest step of {min(rank.step_seconds):g} s; "
                f"times must be positive."
            )
            continue
        allowed = WINDOW_TOLERANCE * window + EDGE_SECONDS * max(1, len(rank.epochs))
        if abs(steps - window) > allowed:
            yield (
                f"The steps of rank {rank.rank} sum to {steps:.6g} s, their window took {window:.6g} s: "
                f"{abs(steps - window) / window:.1%} apart, allowed is {WINDOW_TOLERANCE:.0%}."
            )


def _retries(ranks: Sequence[RankRecord]) -> Iterator[str]:
    for rank in ranks:
        for device, count in sorted(rank.allocator_retries.items()):
            if count > 0:
                yield (
                    f"The memory allocator of rank {rank.rank} freed its cache and tried again {count} times on "
                    f"{device} inside the window: the memory was full; use a smaller batch or free the card."
                )


def _shared_gpus(ranks: Sequence[RankRecord]) -> Iterator[str]:
    users: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for rank in ranks:
        for uuid in rank.gpu_uuids:
            if uuid is not None:
                users[rank.host, uuid].append(rank.rank)
    for (host, uuid), numbers in users.items():
        if len(numbers) < 2:
            continue
        if len(set(numbers)) == 1:
            yield f"Rank {numbers[0]} on {host} uses the GPU {uuid} {len(numbers)} times."
        else:
            shown = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
            yield f"Ranks {shown} on {host} share the GPU {uuid}; each must have one of its own."


def _fewer_cores(spec: LaunchSpec, ranks: Sequence[RankRecord]) -> Iterator[str]:
    """A default variant was cut to fit the cores that were promised; an explicit larger one is flagged instead."""
    needed = cores_needed(spec)
    if needed > spec.cores:
        return
    for host, allowed in cores_by_host(ranks).items():
        if allowed < spec.cores:
            yield (
                f"{spec.cores} cores were promised on {host} (threads of {spec.ranks_per_node} ranks and loader "
                f"workers need {needed}), but the ranks may use {allowed}. Look for a binding that cuts them (taskset, "
                f"srun --cpu-bind, a cpuset)."
            )


def _clock_steps(ranks: Sequence[RankRecord]) -> Iterator[str]:
    """The system's clock and the steady one must tell the same time: else dates and telemetry can't be trusted."""
    for rank in ranks:
        if not rank.window_edges or any(len(edges) != 2 for edges in rank.window_edges):
            continue
        wall = math.fsum(end - begin for begin, end in rank.window_edges)
        allowed = WINDOW_TOLERANCE * rank.window_seconds + CLOCK_SECONDS * len(rank.window_edges)
        if math.isfinite(wall - rank.window_seconds) and abs(wall - rank.window_seconds) > allowed:
            yield (
                f"The clock of {rank.host} was set while rank {rank.rank} measured: its window of "
                f"{rank.window_seconds:.3g} s took {wall:.3g} s by it. Look at the time service (chronyc tracking)."
            )


def _unlike_ranks(ranks: Sequence[RankRecord]) -> Iterator[str]:
    """Ranks of one launch do the same work in the same stack; what differs was not the same launch."""
    first = ranks[0]
    for rank in ranks[1:]:
        for what, ours, theirs in (
            ("parameters", first.parameters, rank.parameters),
            ("epochs", len(first.epochs), len(rank.epochs)),
            ("timed steps", len(first.step_seconds), len(rank.step_seconds)),
        ):
            if ours != theirs:
                yield f"Rank {first.rank} has {ours} {what}, rank {rank.rank} has {theirs}."
        for key in STACK_KEYS:
            if first.stack.get(key) != rank.stack.get(key):
                yield (
                    f"Rank {first.rank} ran with {key} {first.stack.get(key)}, "
                    f"rank {rank.rank} with {rank.stack.get(key)}: two stacks in one launch."
                )


def _rank_order(spec: LaunchSpec, ranks: Sequence[RankRecord]) -> Iterator[str]:
    """On a node, ranks take its devices in their own order: else a rank measures and reports another one's card."""
    for rank in ranks:
        # Not counted by host name: two nodes may have one, in containers and where one machine plays both.
        place = rank.rank % spec.ranks_per_node
        if rank.local_rank != place:
            yield (
                f"Rank {rank.rank} on {rank.host} has local rank {rank.local_rank}, {place} was expected: ranks are in "
                f"another order than their devices. Look at who sets RANK and LOCAL_RANK."
            )


def _other_stack(ranks: Sequence[RankRecord], stack: Mapping[str, Any]) -> Iterator[str]:
    """What ran must be what was asked for: a package in the user's home, or a module, may come before it."""
    for rank in ranks:
        for key in (*STACK_KEYS, "torch_path"):
            asked, got = stack.get(key), rank.stack.get(key)
            if asked is not None and got is not None and asked != got:
                yield (
                    f"Rank {rank.rank} ran with {key} {got}, the stack has {key} {asked}: another one came first. "
                    f"Look at PYTHONPATH, at packages in the user's home (pip list --user) and at loaded modules."
                )
                return


def _unreadable_numbers(ranks: Sequence[RankRecord]) -> Iterator[str]:
    for rank in ranks:
        places = list(_not_finite(vars(rank), ""))
        if places:
            more = f" and {len(places) - 3} more" if len(places) > 3 else ""
            yield (
                f"The record of rank {rank.rank} holds numbers that are not finite: {', '.join(places[:3])}{more}; "
                f"they are left out."
            )


def _not_finite(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield path.lstrip(".")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _not_finite(item, f"{path}[{index}]")
    elif hasattr(value, "__dataclass_fields__"):
        yield from _not_finite(vars(value), path)
