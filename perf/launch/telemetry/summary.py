"""What a launch's looks add up to: the record's ``telemetry``. Pure: samples and rank records in, JSON-like data out.

docs/telemetry.md describes the shape. Counters are read off at the window's edges, between the two looks that enclose
each; gauges are those of the looks inside it. What can't be had is null.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from perf.contract import LaunchSpec, RankRecord
from perf.launch.telemetry.reading import GpuReading, Header, Sample, bare_uuid

AVERAGED_SECONDS = 1.0
"""NVML gives utilization over the last 1/6 to 1 s and, on recent cards, power over the last second: a look that early
in the window still tells of what came before."""

EDGE_SECONDS = 0.25
"""A look that the window's end called for comes this late at most, unless every core is taken."""

Stretch = tuple[float, float]
Node = tuple[Header | None, Sequence[Sample]]


def summarize(
    spec: LaunchSpec, ranks: Sequence[RankRecord], nodes: Sequence[Node], problem: str = ""
) -> dict[str, Any]:
    """Return what was observed beside a launch.

    Parameters
    ----------
    spec
        The launch.
    ranks
        Its rank records: when their windows began and ended, and which GPUs they used.
    nodes
        Header and samples of each node's sampler.
    problem
        Why there are none, where that is known.
    """
    stretches = stretches_of(ranks)
    seconds = sum(end - begin for begin, end in stretches)
    found: dict[str, Any] = {
        "window_seconds": seconds if stretches else None,
        "nodes": [],
        "gpus": [],
        "ranks": [record.telemetry for record in ranks],
        "unread": {"telemetry": problem} if problem else {},
    }
    for header, samples in nodes:
        if header is None:
            found["unread"].setdefault("telemetry", "the sampler wrote nothing")
            continue
        found["unread"].update(header.problems)
        found["nodes"].append(node_summary(spec, header, samples, stretches))
        found["gpus"] += gpu_summaries(header, samples, stretches, ranks)
    return found


def stretches_of(ranks: Sequence[RankRecord]) -> list[Stretch]:
    """Return begin and end of each stretch of the launch's window: from its first rank's to its last rank's edge.

    Empty where the ranks do not agree on how many there are, or a clock went backwards.
    """
    edges = [record.window_edges for record in ranks]
    counts = {len(found) for found in edges}
    if len(counts) != 1 or any(len(pair) != 2 for found in edges for pair in found):
        return []
    stretches = [(min(b for b, _ in pairs), max(e for _, e in pairs)) for pairs in zip(*edges, strict=True)]
    return stretches if all(begin < end for begin, end in stretches) else []


def node_summary(
    spec: LaunchSpec, header: Header, samples: Sequence[Sample], stretches: Sequence[Stretch]
) -> dict[str, Any]:
    """Return what the launch's processes and the whole node did in the window."""
    seconds = sum(end - begin for begin, end in stretches)
    cpu = grown(samples, stretches, lambda s: s.host.cpu_seconds_total)
    busy = grown(samples, stretches, lambda s: s.host.busy_seconds_total)
    cores = min(spec.cores, header.cores_allowed or spec.cores)
    allowed = min(
        (size for size in (header.memory_limit_bytes, header.memory_total_bytes) if size), default=None
    )
    peak = max((s.host.pss_bytes for s in samples if s.host.pss_bytes is not None), default=None)
    resources = {name for s in samples for name in s.host.pressure_seconds_total}
    return {
        "host": header.host,
        "looks": sum(1 for s in samples if inside(s, stretches)),
        "edge_gap_seconds": edge_gap(samples, stretches),
        "cores": cores,
        "cores_allowed": header.cores_allowed,
        "cpu_quota_cores": header.cpu_quota_cores,
        "cpu_seconds": cpu,
        "cpu_efficiency": cpu / (seconds * cores) if cpu is not None and seconds > 0 and cores else None,
        # The tree is part of all; what is left belongs to others, up to the ticks that both are counted in.
        "other_cpu_seconds": None if cpu is None or busy is None else max(0.0, busy - cpu),
        "steal_seconds": grown(samples, stretches, lambda s: s.host.steal_seconds_total),
        "throttled_seconds": grown(samples, stretches, lambda s: s.host.throttled_seconds_total),
        "pressure_seconds": {
            name: grown(samples, stretches, lambda s, n=name: s.host.pressure_seconds_total.get(n))  # type: ignore[misc]
            for name in sorted(resources)
        },
        "processes": max((s.host.processes for s in samples if s.host.processes is not None), default=None),
        "pss_peak_bytes": peak,
        "memory_allowed_bytes": allowed,
        "memory_limit_bytes": header.memory_limit_bytes,
        "memory_efficiency": peak / allowed if peak is not None and allowed else None,
        "cgroup_peak_bytes": max(
            (s.host.memory_peak_bytes for s in samples if s.host.memory_peak_bytes is not None), default=None
        ),
    }


def gpu_summaries(
    header: Header, samples: Sequence[Sample], stretches: Sequence[Stretch], ranks: Sequence[RankRecord]
) -> list[dict[str, Any]]:
    """Return what each GPU that the sampler looked at did in the window."""
    cards: dict[str, GpuReading] = {}
    for sample in samples:
        for gpu in sample.gpus:
            cards.setdefault(gpu.uuid, gpu)
    users = {
        uuid: [
            r.rank
            for r in ranks
            if r.host == header.host and uuid in {bare_uuid(u) for u in r.gpu_uuids if u}
        ]
        for uuid in cards
    }
    # A launch without a window (of component rates, or one that counts samples) is followed while it is there.
    outside = (
        None
        if stretches
        else strangers(samples, [uuid for uuid, ranks in users.items() if ranks], len(ranks))
    )
    return [
        gpu_summary(header, card, users[uuid], samples, stretches, outside) for uuid, card in cards.items()
    ]


def gpu_summary(
    header: Header,
    card: GpuReading,
    ranks: Sequence[int],
    samples: Sequence[Sample],
    stretches: Sequence[Stretch],
    outside: int | None = None,
) -> dict[str, Any]:
    """Return what one GPU did. `ranks` are those that used it, as far as their torch gave its UUID.

    `outside` are the processes besides the launch's where it has no window.
    """
    uuid = card.uuid

    def of(sample: Sample) -> GpuReading:
        return next((gpu for gpu in sample.gpus if gpu.uuid == uuid), GpuReading(uuid, card.index))

    looks = [(sample, of(sample)) for sample in samples if inside(sample, stretches)]
    settled = [gpu for sample, gpu in looks if inside(sample, stretches, after=AVERAGED_SECONDS)]
    gpus = [gpu for _, gpu in looks]
    first = of(samples[0]) if samples and samples[0].why == "first" else GpuReading(uuid, card.index)
    seconds = sum(end - begin for begin, end in stretches)
    energy = grown(samples, stretches, lambda s: of(s).energy_joules_total)
    reasons = [gpu.event_reasons for gpu in gpus if gpu.event_reasons is not None]
    counted = {word for s in samples for word in (of(s).throttle_seconds_total or {})}
    return {
        "host": header.host,
        "uuid": uuid,
        "index": card.index,
        "name": card.name,
        "source": header.source,
        "ranks": list(ranks),
        "shared_card": card.shared_card,
        "utilization_percent": statistics_of(gpu.utilization_percent for gpu in settled),
        "power_watts": statistics_of(gpu.power_watts for gpu in settled),
        "power_limit_watts": card.power_limit_watts,
        "energy_joules": energy,
        "energy_watts": energy / seconds if energy is not None and seconds > 0 else None,
        "temperature_celsius": statistics_of(gpu.temperature_celsius for gpu in gpus),
        "sm_clock_mhz": statistics_of(gpu.sm_clock_mhz for gpu in gpus),
        "sm_clock_max_mhz": card.sm_clock_max_mhz,
        "memory_used_bytes": statistics_of(gpu.memory_used_bytes for gpu in gpus),
        "memory_total_bytes": card.memory_total_bytes,
        # Share of the looks: a reason lasts, or it would not show at 1 Hz.
        "event_reasons": {
            word: count / len(reasons)
            for word, count in sorted(Counter(word for found in reasons for word in set(found)).items())
        }
        if reasons
        else None,
        "throttle_seconds": {
            word: grown(samples, stretches, lambda s, w=word: (of(s).throttle_seconds_total or {}).get(w))  # type: ignore[misc]
            for word in sorted(counted)
        }
        if counted
        else None,
        "other_processes": other_processes(looks, len(ranks)) if stretches else outside,
        "before": {
            # What an older driver reserves can't be told from what somebody else uses.
            "memory_used_bytes": None if first.reserved_counted else first.memory_used_bytes,
            "utilization_percent": first.utilization_percent,
            "processes": None if first.process_ids is None else len(first.process_ids),
        },
    }


def other_processes(looks: Sequence[tuple[Sample, GpuReading]], users: int) -> int | None:
    """Return the most processes on a card that were not the launch's.

    Inside a container the driver gives the host's numbers, which are not the launch's own: then as many as ranks use
    the card are taken for them.
    """
    counts = []
    for sample, gpu in looks:
        if gpu.process_ids is None:
            continue
        own = len(set(gpu.process_ids) & set(sample.process_ids))
        counts.append(max(0, len(gpu.process_ids) - max(own, users)))
    return max(counts, default=None)


def strangers(samples: Sequence[Sample], cards: Sequence[str], ranks: int) -> int | None:
    """Return the most processes on a launch's cards that were not its own, in the looks in which it was there.

    All its cards together: a rank that measures the way to its neighbour's card is on both. In a container as many are
    taken for its own as it has ranks (see `other_processes`).
    """
    counts = []
    for sample in samples:
        seen = [gpu.process_ids for gpu in sample.gpus if gpu.uuid in cards and gpu.process_ids is not None]
        if sample.process_ids and seen:
            found = set(itertools.chain.from_iterable(seen))
            counts.append(max(0, len(found) - max(len(found & set(sample.process_ids)), ranks)))
    return max(counts, default=None)


def grown(
    samples: Sequence[Sample], stretches: Sequence[Stretch], reading: Callable[[Sample], float | None]
) -> float | None:
    """Return by how much a counter grew inside the window; None where an edge is not enclosed by two readings.

    Between two looks a counter is taken to grow evenly. The look that a rank called for comes milliseconds after the
    edge, so what that assumes wrongly is the rate over those milliseconds.
    """
    points = [(sample.time, value) for sample in samples if (value := reading(sample)) is not None]
    total = 0.0
    for begin, end in stretches:
        first, last = value_at(points, begin), value_at(points, end)
        if first is None or last is None or last < first:
            # A counter that went back was set anew: its driver was loaded again, or a process of the tree was lost.
            return None
        total += last - first
    return total if stretches else None


def value_at(points: Sequence[tuple[float, float]], time: float) -> float | None:
    """Return a counter at a time between two of its readings, which are in the order of time; None outside."""
    for (before, low), (after, high) in itertools.pairwise(points):
        if before <= time <= after:
            return high if after == before else low + (high - low) * (time - before) / (after - before)
    return None


def inside(sample: Sample, stretches: Sequence[Stretch], after: float = 0.0) -> bool:
    """Say whether a look fell into the window, `after` seconds or more behind the beginning of a stretch."""
    late = EDGE_SECONDS if sample.why == "close" else 0.0
    return any(begin + after <= sample.time <= end + late for begin, end in stretches)


def edge_gap(samples: Sequence[Sample], stretches: Sequence[Stretch]) -> float | None:
    """Return the longest time from an edge of the window to the look that is nearest to it."""
    gaps = [
        min((abs(sample.time - edge) for sample in samples), default=math.inf)
        for stretch in stretches
        for edge in stretch
    ]
    longest = max(gaps, default=math.inf)
    return longest if math.isfinite(longest) else None


def statistics_of(values: Iterable[float | None]) -> dict[str, float] | None:
    """Return least, mean and greatest of the readings that there are; None for none."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    return {"min": min(found), "mean": statistics.fmean(found), "max": max(found)}
