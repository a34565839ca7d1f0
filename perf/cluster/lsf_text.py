"""What LSF's commands print. Pure parsing; formats of IBM Spectrum LSF 10.1 (its reference of bsub and bjobs)."""

from __future__ import annotations

import re

from perf.cluster.scheduler import Phase, Seen, Usage
from perf.cluster.slurm_text import UNITS
from perf.whole import AMOUNT, whole

FIELDS = (
    "jobid stat exit_code submit_time start_time finish_time cpu_used run_time max_mem slots exec_host "
    "pend_reason exit_reason".split()
)
DELIMITER = "^"
BJOBS_FORMAT = f"{' '.join(FIELDS)} delimiter='{DELIMITER}'"
"""Reasons hold spaces, commas, semicolons and bars; no caret was seen in any."""

PHASES = {
    "PEND": Phase.PENDING,
    "PROV": Phase.PENDING,
    "WAIT": Phase.PENDING,
    "PSUSP": Phase.PENDING,
    "RUN": Phase.RUNNING,
    "USUSP": Phase.RUNNING,
    "SSUSP": Phase.RUNNING,
    "DONE": Phase.COMPLETED,
    "EXIT": Phase.FAILED,
}

REASONS = {
    "TERM_RUNLIMIT": Phase.TIMED_OUT,
    "TERM_CPULIMIT": Phase.TIMED_OUT,
    "TERM_DEADLINE": Phase.TIMED_OUT,
    "TERM_MEMLIMIT": Phase.OUT_OF_MEMORY,
    "TERM_SWAP": Phase.OUT_OF_MEMORY,
    "TERM_OWNER": Phase.CANCELLED,
    "TERM_ADMIN": Phase.CANCELLED,
    "TERM_FORCE_OWNER": Phase.CANCELLED,
    "TERM_FORCE_ADMIN": Phase.CANCELLED,
    "TERM_BUCKET_KILL": Phase.CANCELLED,
    "TERM_PREEMPT": Phase.PREEMPTED,
    "TERM_REQUEUE_OWNER": Phase.REQUEUED,
    "TERM_REQUEUE_ADMIN": Phase.REQUEUED,
    "TERM_ZOMBIE": Phase.NODE_FAILED,
    "TERM_UNKNOWN": Phase.FAILED,
    "TERM_CSM_ALLOC": Phase.NODE_FAILED,
}
"""LSF's words for why it ended a job (its reference, 'Job termination by LSF')."""

SUBMITTED = re.compile(r"Job <(\d+)> is submitted")


def parse_bsub(text: str) -> str | None:
    """Return the id in ``Job <123> is submitted to queue <gpu>.``; None where nothing was submitted."""
    match = SUBMITTED.search(text)
    return match[1] if match else None


def parse_bjobs(text: str) -> dict[str, tuple[Seen, Usage]]:
    """Read lines of `BJOBS_FORMAT`. Lines about jobs that LSF does not know any more are passed over."""
    found = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(DELIMITER, len(FIELDS) - 1)]
        if len(parts) == len(FIELDS) and whole(parts[0]) is not None:
            values = {name: "" if part == "-" else part for name, part in zip(FIELDS, parts, strict=True)}
            found[values["jobid"]] = (_seen(values), _usage(values))
    return found


def phase_of(word: str, reason: str) -> Phase:
    """Return the phase of a state and, for EXIT, of the reason that LSF gives for it."""
    phase = PHASES.get(word, Phase.UNKNOWN)
    if phase is Phase.FAILED:
        named = re.search(r"TERM_[A-Z_]+", reason)
        return REASONS.get(named[0], Phase.FAILED) if named else Phase.FAILED
    return phase


def _seen(values: dict[str, str]) -> Seen:
    phase = phase_of(values["stat"], values["exit_reason"])
    code = whole(values["exit_code"])
    if phase is Phase.COMPLETED and code is None:
        code = 0
    killed = code is not None and code > 128
    return Seen(
        phase,
        values["stat"],
        reason=values["exit_reason"] if phase.ended else values["pend_reason"],
        nodes=_hosts(values["exec_host"]),
        status=code,
        signal=code - 128 if code is not None and killed else None,
    )


def _usage(values: dict[str, str]) -> Usage:
    return Usage(
        source="bjobs",
        wall_seconds=_seconds(values["run_time"]),
        cpu_seconds=_seconds(values["cpu_used"]),
        cores=whole(values["slots"]),
        peak_memory_bytes=_size(values["max_mem"]),
        nodes=_hosts(values["exec_host"]),
    )


def _hosts(text: str) -> str:
    """Read ``16*n1:16*n2``: each host once."""
    names = [part.rpartition("*")[2] for part in text.split(":") if part]
    return ",".join(dict.fromkeys(names))


def _seconds(text: str) -> float | None:
    match = re.match(f"({AMOUNT}) second", text)
    return float(match[1]) if match else None


def _size(text: str) -> int | None:
    """Read ``1.5 Gbytes``."""
    match = re.match(f"({AMOUNT}) ?([KMGT]?)(?:i?B|bytes)?", text)
    return int(float(match[1]) * UNITS[match[2]]) if match else None
