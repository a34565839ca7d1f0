"""What the jobs cost: a table with CPU and memory efficiency as `seff` has it, and what stands out in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from perf.cluster.folders import JobFolder
from perf.cluster.jobs import Job
from perf.cluster.scheduler import Usage
from perf.contract import LaunchRecord
from perf.report.stored import NoRun, load
from perf.report.text import clean, duration, memory, share

LOW_CPU = 0.10
"""The tutorials' training (sources 000 and 001, seff and jobinfo) kept 76 to 95 % of its one core busy; a job in which
one such process has ten cores is at a tenth."""

HIGH_MEMORY = 0.90
"""Slurm samples memory every 30 s unless told otherwise (JobAcctGatherFrequency), so the true peak is higher than the
one that is known; the tutorials' jobs used 7 and 16 % of theirs."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One job's line. `remarks` are sentences about what stands out."""

    job: str
    id: str
    end: str
    usage: Usage
    remarks: tuple[str, ...] = ()


def own_usage(job: Job, folder: JobFolder, *, launches: bool = True) -> Usage:
    """Return what can be said of a job without its scheduler: its script's times, and what its ranks say if asked."""
    started, marker, submitted = folder.started(), folder.marker(), folder.submitted()
    try:
        records = load(folder.path).records if launches else []
    except (NoRun, OSError):
        records = []
    return Usage(
        source="own",
        wall_seconds=marker.at - started if started is not None and marker is not None else None,
        cpu_seconds=_cpu_seconds(records),
        cores=job.cores * job.nodes,
        peak_memory_bytes=max((peak for r in records if (peak := _peak(r)) is not None), default=None),
        gpus=job.gpus * job.nodes,
        nodes=",".join(dict.fromkeys(host for record in records for host in record.host)),
        queue_seconds=max(0.0, started - submitted[1])
        if started is not None and submitted is not None
        else None,
    )


def completed(usage: Usage | None, own: Usage) -> Usage:
    """Return the scheduler's figures, with our own where it has none."""
    if usage is None:
        return own
    values = {
        field.name: getattr(usage, field.name)
        if getattr(usage, field.name) not in (None, "")
        else getattr(own, field.name)
        for field in dataclasses.fields(Usage)
    }
    return Usage(**values)


def remarks(usage: Usage) -> tuple[str, ...]:
    """Return what stands out in a job's figures."""
    found = []
    efficiency = usage.cpu_efficiency
    if efficiency is not None and efficiency < LOW_CPU:
        found.append(f"CPU efficiency {share(efficiency)}, below {share(LOW_CPU)}: ask for fewer cores")
    used = usage.memory_efficiency
    if used is not None and used > 1.0:
        # It can't have used more than it had: the kernel would have ended it.
        counted = "resident sizes were summed, which counts pages that processes share once for each of them"
        found.append(f"memory {share(used)} used: {counted}; the true part is smaller")
    elif used is not None and used > HIGH_MEMORY:
        found.append(
            f"memory {share(used)} used, above {share(HIGH_MEMORY)}: ask for more, or the next run may be killed"
        )
    return tuple(found)


def table(rows: Sequence[Row]) -> list[str]:
    """Return the accounting as lines: a heading, a line a job, and the remarks."""
    headings = ("job", "id", "end", "waited", "ran", "GPUs", "CPU", "peak memory", "memory", "nodes", "from")
    cells = [headings, *(_cells(row) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(headings))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return lines + [f"{row.job}: {remark}." for row in rows for remark in row.remarks]


def as_facts(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON-like data, efficiencies included."""
    return [
        {
            "job": row.job,
            "id": row.id,
            "end": row.end,
            **dataclasses.asdict(row.usage),
            "cpu_efficiency": row.usage.cpu_efficiency,
            "memory_efficiency": row.usage.memory_efficiency,
            "remarks": list(row.remarks),
        }
        for row in rows
    ]


def _cells(row: Row) -> tuple[str, ...]:
    usage = row.usage
    return (
        row.job,
        clean(row.id) or "–",
        row.end,
        duration(usage.queue_seconds),
        duration(usage.wall_seconds),
        "–" if usage.gpus is None else str(usage.gpus),
        "–" if usage.cpu_efficiency is None else share(usage.cpu_efficiency),
        memory(usage.peak_memory_bytes),
        "–" if usage.memory_efficiency is None else share(usage.memory_efficiency),
        clean(usage.nodes) or "–",
        usage.source,
    )


def _cpu_seconds(launches: Sequence[LaunchRecord]) -> float | None:
    """Return the CPU time of all ranks and their loader workers, where every rank says it."""
    found = [
        seconds
        for record in launches
        for rank in record.telemetry.get("ranks", [])
        if (seconds := _cpu(rank)) is not None
    ]
    return sum(found) if found else None


def _cpu(rank: Any) -> float | None:
    if not isinstance(rank, dict):
        return None
    parts = [rank.get("cpu_seconds"), rank.get("children_cpu_seconds")]
    known = [float(part) for part in parts if isinstance(part, (int, float))]
    return sum(known) if known else None


def _peak(record: LaunchRecord) -> int | None:
    """Return the sum of the ranks' largest resident sizes."""
    ranks = record.telemetry.get("ranks", [])
    found = [rank["max_rss_bytes"] for rank in ranks if isinstance(rank, dict) and "max_rss_bytes" in rank]
    return sum(found) if found and all(isinstance(size, int) for size in found) else None
