"""What Slurm's commands print: states, times, sizes. Pure parsing, of 20.11 and later."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from perf.cluster.hostlist import NoHostlist, expanded
from perf.cluster.scheduler import Phase, Seen, Usage
from perf.whole import AMOUNT, NUMBER, whole

PHASES = {
    "PENDING": Phase.PENDING,
    "CONFIGURING": Phase.PENDING,
    "RESV_DEL_HOLD": Phase.PENDING,
    "RUNNING": Phase.RUNNING,
    "COMPLETING": Phase.RUNNING,
    "RESIZING": Phase.RUNNING,
    "SIGNALING": Phase.RUNNING,
    "STAGE_OUT": Phase.RUNNING,
    "STOPPED": Phase.RUNNING,
    "SUSPENDED": Phase.RUNNING,
    "REQUEUED": Phase.REQUEUED,
    "REQUEUE_FED": Phase.REQUEUED,
    "REQUEUE_HOLD": Phase.REQUEUED,
    "SPECIAL_EXIT": Phase.REQUEUED,
    "COMPLETED": Phase.COMPLETED,
    "FAILED": Phase.FAILED,
    "BOOT_FAIL": Phase.NODE_FAILED,
    "NODE_FAIL": Phase.NODE_FAILED,
    "LAUNCH_FAILED": Phase.NODE_FAILED,
    "RECONFIG_FAIL": Phase.NODE_FAILED,
    "CANCELLED": Phase.CANCELLED,
    "REVOKED": Phase.CANCELLED,
    "TIMEOUT": Phase.TIMED_OUT,
    "DEADLINE": Phase.TIMED_OUT,
    "PREEMPTED": Phase.PREEMPTED,
    "OUT_OF_MEMORY": Phase.OUT_OF_MEMORY,
}

SQUEUE_FORMAT = "%i|%T|%S|%N|%r"

SACCT_FORMAT = (
    "JobIDRaw State ExitCode ElapsedRaw TotalCPU NCPUS NTasks MaxRSS ReqMem AllocTRES NodeList Submit Start"
)
SACCT_FIELDS = SACCT_FORMAT.split()

UP = (
    "idle",
    "mix",
    "mixed",
    "alloc",
    "allocated",
    "comp",
    "completing",
    "resv",
    "reserved",
    "plnd",
    "planned",
)

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


@dataclass(frozen=True)
class _Row:
    step: str
    values: dict[str, str]


def phase_of(word: str) -> Phase:
    """Return the phase of a state such as ``CANCELLED by 54321``, ``OUT_OF_MEMORY`` or the short ``OUT_OF_ME+``."""
    first = word.split(maxsplit=1)[0].rstrip("+") if word.split() else ""
    if first in PHASES:
        return PHASES[first]
    cut = [phase for name, phase in PHASES.items() if len(first) >= 6 and name.startswith(first)]
    return cut[0] if len(set(cut)) == 1 else Phase.UNKNOWN


def parse_squeue(text: str) -> dict[str, Seen]:
    """Read lines of `SQUEUE_FORMAT`. A line that is none of these (a site's banner) is passed over."""
    found = {}
    for line in text.splitlines():
        parts = line.split("|", 4)
        if len(parts) != 5 or whole(parts[0]) is None:
            continue
        job, word, start, nodes, reason = (part.strip() for part in parts)
        phase = phase_of(word)
        found[job] = Seen(
            phase,
            word,
            reason="" if reason in ("None", "(null)") else reason,
            nodes=_nodes(nodes),
            # For a job that waits it is the time that Slurm plans to start it at.
            started=None if phase is Phase.PENDING else parse_time(start),
        )
    return found


def parse_sacct(text: str) -> dict[str, tuple[Seen, Usage]]:
    """Read the lines of ``sacct --parsable2 --noheader`` with `SACCT_FIELDS`: a job's own line, and its steps'."""
    rows: dict[str, list[_Row]] = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) != len(SACCT_FIELDS) or not parts[0][:1].isdigit():
            continue
        values = dict(zip(SACCT_FIELDS, parts, strict=True))
        job, _, step = values["JobIDRaw"].partition(".")
        rows.setdefault(job, []).append(_Row(step, values))
    found = {}
    for job, lines in rows.items():
        own = [row.values for row in lines if not row.step]
        if own:
            # A requeued job has a line for each start; the last one holds.
            found[job] = (_seen(own[-1]), _usage(own[-1], [row.values for row in lines if row.step]))
    return found


def _seen(values: dict[str, str]) -> Seen:
    word = values["State"]
    status, signal = parse_exit(values["ExitCode"])
    by = re.fullmatch(r"CANCELLED by (\d+)", word)
    return Seen(
        phase_of(word),
        word,
        reason=f"by user number {by[1]}" if by else "",
        nodes=_nodes(values["NodeList"]),
        started=parse_time(values["Start"]),
        status=status,
        signal=signal,
    )


def _usage(job: dict[str, str], steps: list[dict[str, str]]) -> Usage:
    """As `seff` computes it: the peak is the largest step's, each task counted with the largest one's memory."""
    submitted, started = parse_time(job["Submit"]), parse_time(job["Start"])
    peaks = [
        size * max(1, whole(step["NTasks"]) or 0)
        for step in steps
        if (size := parse_size(step["MaxRSS"])) is not None
    ]
    tres = dict(part.split("=", 1) for part in job["AllocTRES"].split(",") if "=" in part)
    cores, wall = whole(job["NCPUS"]), whole(job["ElapsedRaw"])
    return Usage(
        source="sacct",
        wall_seconds=None if wall is None else float(wall),
        cpu_seconds=parse_duration(job["TotalCPU"]),
        cores=cores,
        peak_memory_bytes=max(peaks, default=None),
        memory_bytes=parse_size(tres.get("mem", "")) or parse_asked_memory(job["ReqMem"], cores),
        # A job without GPUs has no such entry; that is a count of 0, not an unknown one, where TRES are told at all.
        gpus=(whole(tres.get("gres/gpu", "")) or 0) if tres else None,
        nodes=_nodes(job["NodeList"]),
        queue_seconds=started - submitted if started is not None and submitted is not None else None,
    )


def parse_scontrol(text: str) -> dict[str, Seen]:
    """Read ``scontrol --oneliner show job``: a line a job; others are passed over."""
    found = {}
    for line in text.splitlines():
        fields = dict(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", line))
        if whole(fields.get("JobId", "")) is None or "JobState" not in fields:
            continue
        status, signal = parse_exit(fields.get("ExitCode", ""))
        reason = fields.get("Reason", "")
        found[fields["JobId"]] = Seen(
            phase_of(fields["JobState"]),
            fields["JobState"],
            reason="" if reason == "None" else reason,
            nodes=_nodes(fields.get("NodeList", "")),
            started=parse_time(fields.get("StartTime", "")),
            status=status,
            signal=signal,
        )
    return found


def parse_sinfo(text: str) -> list[str]:
    """Read lines ``node|state``: the nodes that can take a job, each once (a node is in several partitions)."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        node, bar, state = line.strip().partition("|")
        # "idle*" does not answer, "idle~" is powered down and comes when it is asked for.
        if bar and node and not state.endswith("*") and state.rstrip("~#%@$") in UP:
            found[node] = None
    return list(found)


def parse_exit(text: str) -> tuple[int | None, int | None]:
    """Read ``status:signal``."""
    match = re.fullmatch(f"({NUMBER}):({NUMBER})", text)
    return (int(match[1]), int(match[2])) if match else (None, None)


def parse_time(text: str) -> float | None:
    """Read a local time such as ``2026-11-28T06:41:36``; None for ``Unknown``, ``N/A`` and ``None``."""
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").astimezone().timestamp()
    except (ValueError, OverflowError):  # a day before the clock's first
        return None


def parse_duration(text: str) -> float | None:
    """Read ``[days-]hours:minutes:seconds``, ``minutes:seconds.fraction`` and the like; seconds."""
    match = re.fullmatch(rf"(?:(?:({NUMBER})-)?({NUMBER}):)?({NUMBER}):({AMOUNT})", text)
    if not match:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def parse_size(text: str) -> int | None:
    """Read a size such as ``2053M``, ``415.5K`` or ``1024``, in bytes; MaxRSS without a unit is bytes."""
    match = re.fullmatch(f"({AMOUNT})([KMGTP]?)", text)
    return int(float(match[1]) * UNITS[match[2]]) if match else None


def parse_asked_memory(text: str, cores: int | None) -> int | None:
    """Read ReqMem: ``4000M``; before 21.08 with ``n`` for each node (one counts here) or ``c`` for each core."""
    size = parse_size(text.rstrip("nc"))
    if size is None:
        return None
    if text.endswith("c"):
        return size * cores if cores else None
    return size


def _nodes(text: str) -> str:
    """Return nodes by their names, with commas between; a list in a form that is not known, as it is."""
    if text in ("None assigned", "(null)", "None"):
        return ""
    try:
        return ",".join(expanded(text))
    except NoHostlist:
        return text
