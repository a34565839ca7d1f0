"""Which rank failed first, and how. Pure: evidence in, cause out."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from perf.launch.evidence import BROKEN, GOOD, Evidence, RankEvidence
from perf.launch.stack import ended
from perf.launch.stacks import waits_for_others

PHASES = (
    "import",
    "setup",
    "feed",
    "devices",
    "data",
    "build",
    "warm-up",
    "window",
    "epoch",
    "validate",
    "read-back",
    "record",
    "done",
)
"""In the order in which a rank passes them (its data are opened in ``feed``, or else in ``data``): of ranks that all
wait, the one that is behind keeps the others waiting."""

# What a rank says whose partner went away. It failed, but not first, even where torchrun noticed it first: torchrun
# looks every 0.1 s (every 5 s before torch 2.4) and takes the lowest rank of those that it finds.
VICTIM = re.compile(
    r"Connection closed by peer|Connection reset by peer|Broken pipe|recvValue failed|failed to recv, got 0 bytes"
    r"|ncclRemoteError|remote process exited or there was a network error|NCCL communicator was aborted"
    r"|[Ww]atchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (recv|send) operation"
    r"|Socket Timeout|Connection refused",
)
HINTS = {
    signal.SIGKILL: "Nothing here sent that signal. Mostly it is the kernel's out-of-memory killer: "
    "look at the job's memory limit and at `dmesg`.",
    signal.SIGBUS: "Mostly /dev/shm is full, or a mapped file became shorter: look at `df /dev/shm`.",
    signal.SIGTERM: "Nothing here sent that signal: look at the scheduler's log and at the job's time limit.",
    signal.SIGXCPU: "The limit of CPU seconds was reached: look at `ulimit -t`.",
    signal.SIGILL: "The stack was built for another CPU than this one.",
}

LOG_HINTS = (
    (
        re.compile(r"unable to allocate shared memory|out of shared memory|killed by signal: Bus error"),
        "/dev/shm is full or too small: look at `df -h /dev/shm`; in a container give --shm-size or --ipc=host.",
    ),
    (
        re.compile(r"No space left on device|Disk quota exceeded"),
        "The disk is full, or a quota is used up: look at `df -h` and `quota` for the folder that the error names.",
    ),
    (
        re.compile(r"CUDA out of memory|OutOfMemoryError"),
        "The GPU's memory is full: look at `nvidia-smi` for other processes on the card.",
    ),
    (
        re.compile(r"MemoryError|[Cc]an't allocate memory|Cannot allocate memory"),
        "The rank got no more memory on the host: look at the job's memory limit and at `ulimit -v`.",
    ),
    (
        re.compile(r"this stack has no line_profiler"),
        "It has to be installed in the stack under test: the driver's own can't profile there.",
    ),
    (
        re.compile(r"a setting was asked for and is not in force"),
        "Something in the stack overrides it: look at its variables, its modules, its wrapper, a sitecustomize.",
    ),
    (
        re.compile(r"Duplicate GPU detected"),
        "Two ranks took one GPU: look at who sets LOCAL_RANK and CUDA_VISIBLE_DEVICES.",
    ),
)
"""What a rank's own log gives away, the most telling first."""


FILE_HINT = " Look at the file system that the run's folder lies on: `df -h`, quotas, its log."
"""What to do about a record that was written and can't be used."""


@dataclass(frozen=True)
class Cause:
    """What failed first: a rank, or None for torchrun or for no single one. `note` explains `status` in sentences."""

    rank: int | None
    status: str
    note: str = ""


def find_cause(evidence: Evidence) -> Cause:
    """Choose what failed first.

    A rank that ended by itself, other than well, comes before any that hung, since hanging is what the others then
    do. One whose log says that its partner went away yields to one whose log does not. What the clean-up or torchrun
    ended is never the cause.
    """
    failed = sorted((rank for rank in evidence.ranks if failed_itself(rank)), key=_precedence)
    if agent_was_killed(evidence) and not (failed and _earlier(failed[0].ended_at, evidence.agent_ended_at)):
        return Cause(None, ending(evidence.agent_exit), _hint(evidence.agent_exit))
    if failed:
        return cause_of(failed[0])
    if evidence.timed_out:
        return _hang(evidence)
    return Cause(None, ending(evidence.agent_exit), "No rank is known to have failed.")


def failed_itself(rank: RankEvidence) -> bool:
    """Say whether a rank ended, nobody having ended it, and did not end well."""
    if rank.ended_by_us:
        return False
    if rank.exit_code is not None:
        return rank.exit_code != 0 or rank.record != GOOD
    return rank.ended_at is not None and rank.record != GOOD


def is_victim(rank: RankEvidence) -> bool:
    """Say whether a rank's own log says that it failed because another one had gone."""
    return rank.exit_code not in (0, None) and bool(VICTIM.search("\n".join(rank.log)))


def cause_of(rank: RankEvidence) -> Cause:
    """Say how a rank failed that ended by itself."""
    what, _, detail = (rank.problem if rank.record == BROKEN else "wrote no record").partition(": ")
    note = f"{in_phase(rank)[:1].upper()}{in_phase(rank)[1:]}."
    if rank.exit_code is None:
        return Cause(rank.rank, f"ended and {what}; nobody saw its exit status", f"{note} {detail}".rstrip())
    if rank.exit_code == 0:
        detail += FILE_HINT if rank.record == BROKEN else ""
        return Cause(rank.rank, f"ended with exit status 0 and {what}", f"{note} {detail}".rstrip())
    hint = _hint(rank.exit_code) or log_hint(rank.log)
    return Cause(rank.rank, ending(rank.exit_code), f"{note} {hint}".rstrip())


def log_hint(log: Sequence[str]) -> str:
    """Return what to do about the error that a rank's log ends with; '' where nothing is known of it."""
    text = "\n".join(log)
    return next((words for pattern, words in LOG_HINTS if pattern.search(text)), "")


def waits(rank: RankEvidence) -> bool:
    """Say whether a rank is known to wait for the others. One that dumped no stack is not known to."""
    dumps = [dump for dump in rank.dumps if dump.timeout]
    return bool(dumps) and not rank.kernel_state and waits_for_others(dumps[-1].frames)


def in_phase(rank: RankEvidence) -> str:
    """Say where a rank was, in words that follow `while`."""
    where = f"in phase {rank.phase}" if rank.phase else "before its first phase"
    return f"{where} ({rank.kernel_state})" if rank.kernel_state else where


def ending(status: int | None) -> str:
    """Return ``exit status 3``, or ``killed by signal 9 (SIGKILL)``."""
    if status is None:
        return "ended by the clean-up"
    return ended(status).removeprefix("was ").removeprefix("ended with ")


def agent_was_killed(evidence: Evidence) -> bool:
    """Say whether torchrun itself was killed by a signal that the clean-up did not send."""
    return not evidence.direct and evidence.agent_exit is not None and evidence.agent_exit < 0


def _hang(evidence: Evidence) -> Cause:
    """Name the rank that does not wait: those inside a collective, a barrier or backward wait for it.

    Where every rank still took steps nobody waits for long: the launch is slow.
    """
    limit = f"ran past its time limit of {evidence.time_limit:g} s"
    running = [rank for rank in evidence.ranks if rank.record != GOOD]
    if not running:
        return Cause(None, limit, "Every rank left its record, but the launch did not end.")
    slowest = min(running, key=_progress)
    if slowest.progress and all(rank.moves for rank in running):
        return Cause(
            slowest.rank if len(evidence.ranks) == 1 else None,
            f"{limit} while {in_phase(slowest)}",
            f"It is slow, not stuck: near the limit it {slowest.progress}, of {slowest.progress.steps} so far. "
            "--launch-timeout gives it more time.",
        )
    if len(evidence.ranks) == 1:
        return Cause(running[0].rank, f"{limit} while {in_phase(running[0])}")
    to_blame = sorted((rank for rank in running if not waits(rank)), key=_progress)
    if to_blame:
        first, *others = to_blame
        if others:
            note = f"Rank {', '.join(str(rank.rank) for rank in others)} does not wait for it either."
        else:
            note = (
                "Every other rank that was left waits for it."
                if len(running) > 1
                else "The other ranks are done."
            )
        return Cause(first.rank, f"{limit} while {in_phase(first)}", note)
    in_order = sorted(running, key=_progress)
    behind, ahead = in_order[0], in_order[-1]
    if behind is ahead:
        return Cause(
            behind.rank,
            f"{limit} while {in_phase(behind)}",
            "It waits for others, but every other rank is done.",
        )
    if _progress(behind)[0] < _progress(ahead)[0]:
        return Cause(
            behind.rank,
            f"{limit} while {in_phase(behind)}",
            "Every rank waits for another, and this one is behind: they are not in the same operation.",
        )
    return Cause(
        None,
        f"{limit} while {in_phase(behind)}",
        "Every rank waits for another, all in the same phase: look at the backend and the network between ranks.",
    )


def _progress(rank: RankEvidence) -> tuple[int, float, int]:
    """Order ranks by how far they came: a rank that is in none of the known phases has just begun."""
    place = PHASES.index(rank.phase) if rank.phase in PHASES else -1
    return place, rank.phase_time if rank.phase_time is not None else -math.inf, rank.rank


def _precedence(rank: RankEvidence) -> tuple[bool, float, bool, bool, int]:
    """Order ranks that failed by who failed first."""
    return (
        is_victim(rank),
        math.inf if rank.ended_at is None else rank.ended_at,
        # Seen in one look: torchrun notices any status but 0, so the silent one had gone before.
        rank.exit_code not in (0, None),
        not rank.root_cause,
        rank.rank,
    )


def _earlier(first: float | None, second: float | None) -> bool:
    return first is not None and (second is None or first < second)


def _hint(status: int | None) -> str:
    return HINTS.get(signal.Signals(-status), "") if status is not None and -status in set(HINTS) else ""
