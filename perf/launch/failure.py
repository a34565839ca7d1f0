"""The error of a launch that gave no record: a message that a person can act on. Pure: evidence in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perf.launch.cause import (
    Cause,
    agent_was_killed,
    cause_of,
    ending,
    find_cause,
    in_phase,
    is_victim,
    waits,
)
from perf.launch.evidence import GOOD, Evidence, RankEvidence
from perf.launch.stacks import SHOWN_FRAMES, Frame
from perf.launch.text import harmless, shorten


class LaunchFailed(Exception):
    """A launch that gave no record. The message tells all; the fields are for whoever counts or compares.

    `rank` is the one that failed first, None where no single rank did. `status` says how, without a subject, as in
    ``killed by signal 9 (SIGKILL)``. `facts` holds what the function of that name returns, for reports.
    """

    def __init__(
        self,
        message: str,
        *,
        launch: str = "",
        variant: str = "",
        rank: int | None = None,
        host: str = "",
        status: str = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        # The message alone goes to Exception, so that the error survives pickling.
        super().__init__(message)
        self.launch = launch
        self.variant = variant
        self.rank = rank
        self.host = host
        self.status = status
        self.facts: dict[str, Any] = dict(facts or {})


class NotAvailable(Exception):
    """What a launch asks for does not exist on this stack or device; the message is the rank's own reason."""


def succeeded(evidence: Evidence) -> bool:
    """Say whether the launch ended by itself, with exit status 0, and every rank left a good record."""
    return evidence.agent_exit == 0 and all(rank.record == GOOD for rank in evidence.ranks)


def diagnose(evidence: Evidence) -> LaunchFailed:
    """Return the error that says why this launch gave no record."""
    cause = find_cause(evidence)
    return LaunchFailed(
        describe(evidence, cause),
        launch=evidence.launch,
        variant=evidence.variant,
        rank=cause.rank,
        host=evidence.host,
        status=cause.status,
        facts=facts(evidence, cause),
    )


def facts(evidence: Evidence, cause: Cause) -> dict[str, Any]:
    """Return what a report shows of a failed launch, as JSON: who failed first, its log, and the others' state.

    `rank` is null where no single rank failed first; `gpus` is empty where it had taken none; `log` holds the last
    lines, harmless already; `others` has `rank`, `gpus` and `state` of every other rank.
    """
    first = None if cause.rank is None else evidence.ranks[cause.rank]
    return {
        "launch": harmless(evidence.launch),
        "variant": harmless(evidence.variant),
        "host": harmless(evidence.host),
        "rank": cause.rank,
        "gpus": [] if first is None else list(first.gpus),
        "status": shorten(harmless(cause.status)),
        "note": shorten(harmless(cause.note), 600),
        "phase": "" if first is None else in_phase(first),
        "log": list(evidence.agent_log if first is None else first.log),
        "log_path": "" if first is None else harmless(first.log_path),
        "others": [
            {"rank": rank.rank, "gpus": list(rank.gpus), "state": shorten(harmless(state_of(rank)))}
            for rank in evidence.ranks
            if rank is not first
        ],
        "folder": harmless(evidence.out_dir),
    }


def describe(evidence: Evidence, cause: Cause) -> str:
    """Return the whole message: the sentence, the log of the rank that failed first, and the others' state."""
    where = f"Launch {harmless(evidence.launch)} of {harmless(evidence.variant)} on {harmless(evidence.host)}"
    lines = [f"{where}: {sentence(_subject(evidence, cause), cause.status)}."]
    if cause.note:
        lines.append(f"  {shorten(harmless(cause.note), 600)}")
    gpus = () if cause.rank is None else evidence.ranks[cause.rank].gpus
    if gpus:
        lines.append(f"  It worked on GPU {', '.join(gpus)}.")
    if evidence.survivors:
        numbers = ", ".join(map(str, evidence.survivors))
        lines.append(
            f"  Processes {numbers} outlived SIGKILL: they are stuck in the kernel (a hung driver or file system)."
        )
    first = None if cause.rank is None else evidence.ranks[cause.rank]
    crashes = [dump for dump in first.dumps if not dump.timeout] if first is not None else []
    if evidence.timed_out:
        lines += _stacks(evidence)
    elif first is not None and crashes:
        lines.append(f"  Where rank {first.rank} crashed, innermost frame first:")
        lines += [f"    {frame}" for frame in _shown(crashes[-1].frames)]
    lines += _log(evidence, first)
    others = [rank for rank in evidence.ranks if rank is not first]
    if others and not evidence.direct:
        lines.append("  The other ranks:" if first is not None else "  The ranks:")
        lines += [f"    rank {rank.rank}: {state_of(rank)}" for rank in others]
    lines.append(f"  All files: {harmless(evidence.out_dir)}")
    return "\n".join(lines)


def sentence(subject: str, status: str) -> str:
    """Join a subject and a status such as ``exit status 3``, ``killed by signal 9`` or ``ran past its time limit``."""
    if status.startswith("exit status "):
        return f"{subject} ended with {status}"
    if status.startswith(("killed by ", "ended by ")):
        return f"{subject} was {status}"
    return f"{subject} {status}"


def state_of(rank: RankEvidence) -> str:
    """Return a rank's state in a few words."""
    if rank.record == GOOD and rank.exit_code in (0, None):
        return "done, its record is good"
    if rank.ended_by_us:
        return f"was running, {in_phase(rank)}, until it was ended with the rest"
    if rank.exit_code in (0, None):
        return f"{cause_of(rank).status}, {in_phase(rank)}"
    seen = "; its log says that another rank had gone" if is_victim(rank) else ""
    return f"{ending(rank.exit_code)}, {in_phase(rank)}{seen}"


def _subject(evidence: Evidence, cause: Cause) -> str:
    if cause.rank is not None:
        return "the worker" if evidence.direct else f"rank {cause.rank}"
    return "it" if evidence.timed_out and not agent_was_killed(evidence) else "torchrun"


def _stacks(evidence: Evidence) -> list[str]:
    lines = ["  What each rank was doing, innermost frame first:"]
    for rank in evidence.ranks:
        if rank.record == GOOD:
            lines.append(f"    rank {rank.rank}: done, its record is good")
            continue
        since = ""
        if rank.phase_time is not None and evidence.ended >= rank.phase_time:
            since = f" for {evidence.ended - rank.phase_time:.0f} s"
        # A rank that moves stands in backward most of the time too.
        role = ", waits for the others" if waits(rank) and not rank.moves and len(evidence.ranks) > 1 else ""
        steps = f", {rank.progress}" if rank.progress else ""
        lines.append(f"    rank {rank.rank}: {in_phase(rank)}{since}{role}{steps}")
        dumps = [dump for dump in rank.dumps if dump.timeout]
        if dumps:
            lines += [f"      {frame}" for frame in _shown(dumps[-1].frames)]
        else:
            lines.append("      no stack: it had ended or was stopped, or hung before it could arm the dump")
    return lines


def _shown(frames: Sequence[Frame]) -> list[str]:
    return [shorten(harmless(str(frame))) for frame in frames[:SHOWN_FRAMES]] or ["no Python frame"]


def _log(evidence: Evidence, first: RankEvidence | None) -> list[str]:
    if first is None:
        log, name, path = evidence.agent_log, "torchrun", ""
    else:
        log, name, path = first.log, "the worker" if evidence.direct else f"rank {first.rank}", first.log_path
    if not log:
        return [f"  {name[:1].upper()}{name[1:]} wrote nothing to its log."]
    where = f" ({harmless(path)})" if path else ""
    return [f"  Last lines of {name}{where}:", *(f"    | {line}" for line in log)]
