"""What is known of a launch that has ended: gathered from its folder and from who watched it. No judgement here."""

from __future__ import annotations

import dataclasses
import json
import linecache
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perf import contract
from perf.contract import LaunchSpec, RankRecord
from perf.launch.command import log_folder
from perf.launch.progress import Progress, read_progress
from perf.launch.stacks import Dump, Frame, parse_dumps
from perf.launch.text import harmless, last_lines, read_tail, shorten
from perf.launch.torchrun import Report, parse_report

STDOUT_FILE = "stdout.log"
STDERR_FILE = "stderr.log"

REPORT_BYTES = 1 << 20
"""torchrun's report is the last it prints; with a traceback of every rank of a node it stays far below 1 MiB."""

SOURCE_BYTES = 1 << 22
"""A source file is never larger; anything larger is not read for the sake of one line."""

STATE_BYTES = 4096

MISSING, BROKEN, GOOD = "missing", "broken", "good"


@dataclass(frozen=True)
class RankEvidence:
    """What is known of one rank.

    Parameters
    ----------
    exit_code
        As ``subprocess`` gives it (negative: a signal); None where nobody saw it.
    ended_at
        When it was seen to have ended by itself, on one clock for all ranks and torchrun; None where it was not.
    ended_by_us
        It was alive when the clean-up began, or torchrun ended it because another rank had failed.
    root_cause
        torchrun holds it for the first that failed.
    phase, phase_time
        Its last state and since when (Unix time).
    record, problem
        `MISSING`, `BROKEN` (`problem` says how) or `GOOD`.
    log, log_path
        The last lines of its own log.
    dumps
        The stacks that it dumped.
    kernel_state
        What the kernel said of its process at the time limit, such as ``stopped``; '' where nobody asked.
    progress
        Steps that it took when its time was nearly over; None where it told nothing.
    gpus
        UUIDs of the GPUs that it took, or their numbers where its torch can't tell; empty before it took one.
    """

    rank: int
    exit_code: int | None = None
    ended_at: float | None = None
    ended_by_us: bool = False
    root_cause: bool = False
    phase: str | None = None
    phase_time: float | None = None
    record: str = MISSING
    problem: str = ""
    log: tuple[str, ...] = ()
    log_path: str = ""
    dumps: tuple[Dump, ...] = ()
    kernel_state: str = ""
    gpus: tuple[str, ...] = ()
    progress: Progress | None = None

    @property
    def moves(self) -> bool:
        """Whether it still took steps when its time was nearly over, and was not stopped since."""
        return self.progress is not None and self.progress.taken > 0 and not self.kernel_state


@dataclass(frozen=True)
class Evidence:
    """What is known of a launch. `agent` is the process that was started: torchrun, or the only rank itself.

    `agent_exit` is None where the clean-up ended it. `gave_up` says that a rank ended without a record while torchrun
    went on waiting for the others. `survivors` are PIDs that outlived SIGKILL. `ended` (Unix time) is when it was over.
    """

    launch: str
    variant: str
    host: str
    direct: bool
    time_limit: float
    ranks: tuple[RankEvidence, ...]
    agent_exit: int | None = 0
    agent_ended_at: float | None = None
    timed_out: bool = False
    gave_up: bool = False
    reported: bool = False
    agent_log: tuple[str, ...] = ()
    out_dir: str = ""
    ended: float = 0.0
    survivors: tuple[int, ...] = ()


@dataclass(frozen=True)
class Observed:
    """What the launcher itself saw of the processes; PIDs, times and codes by rank.

    `started` and `ended` are Unix times; `seconds` go from the first to the end of the launch's first process.
    """

    exit_code: int | None
    ended_at: float | None
    timed_out: bool
    gave_up: bool
    started: float
    seconds: float
    ended: float
    pids: dict[int, int] = field(default_factory=dict)
    ranks_ended_at: dict[int, float] = field(default_factory=dict)
    rank_codes: dict[int, int] = field(default_factory=dict)
    kernel_states: dict[int, str] = field(default_factory=dict)
    survivors: tuple[int, ...] = ()


def gather(spec: LaunchSpec, observed: Observed, host: str) -> tuple[Evidence, list[RankRecord]]:
    """Read what the launch left in its folder. Returns the evidence and the good records, in rank order."""
    direct = spec.strategy != "ddp"
    agent_text = read_tail(Path(spec.out_dir, STDERR_FILE), REPORT_BYTES)
    report = Report({}, frozenset()) if direct else parse_report(agent_text)
    ranks: list[RankEvidence] = []
    records: list[RankRecord] = []
    for rank in range(spec.world_size):
        record, state, problem = read_record(spec, rank)
        if record is not None:
            records.append(record)
        phase, phase_time = read_state(spec.out_dir, rank)
        gpus = read_gpus(spec.out_dir, rank)
        log_path, log = read_log(spec, rank, direct)
        ranks.append(
            RankEvidence(
                rank=rank,
                root_cause=rank in report.failures and report.failures[rank].root_cause,
                phase=phase,
                phase_time=phase_time,
                record=state,
                problem=problem,
                log=tuple(log),
                log_path=log_path,
                dumps=read_dumps(spec.out_dir, rank),
                progress=read_progress(spec.out_dir, rank),
                kernel_state=observed.kernel_states.get(rank, ""),
                gpus=gpus,
                **how_it_ended(rank, direct, report, observed, first_only=spec.launcher == "fork"),
            )
        )
    return (
        Evidence(
            launch=spec.launch,
            variant=spec.variant,
            host=host,
            direct=direct,
            time_limit=spec.time_limit_seconds,
            ranks=tuple(ranks),
            agent_exit=observed.exit_code,
            agent_ended_at=observed.ended_at,
            timed_out=observed.timed_out,
            gave_up=observed.gave_up,
            reported=report.present,
            agent_log=tuple(last_lines(agent_text)),
            out_dir=spec.out_dir,
            ended=observed.ended,
            survivors=observed.survivors,
        ),
        records,
    )


def how_it_ended(
    rank: int, direct: bool, report: Report, observed: Observed, *, first_only: bool = False
) -> dict[str, Any]:
    """Return `exit_code`, `ended_at` and `ended_by_us` of one rank. Pure.

    torchrun's word counts before what was seen from outside. A rank that its report leaves out, and that it did not
    end, had ended with exit status 0 before: torchrun stops at the first other status. But where its ranks are forks
    (`first_only`) it reports the first failure alone, and of the others nothing is known but what was seen.
    """
    if direct:
        ended_by_us = observed.exit_code is None
        return {"exit_code": observed.exit_code, "ended_at": observed.ended_at, "ended_by_us": ended_by_us}
    ended_at = observed.ranks_ended_at.get(rank)
    failure = report.failures.get(rank)
    pid = failure.pid if failure else observed.pids.get(rank)
    if pid is not None and pid in report.closed:
        return {"exit_code": failure.exit_code if failure else None, "ended_at": None, "ended_by_us": True}
    if failure is not None:
        return {"exit_code": failure.exit_code, "ended_at": ended_at, "ended_by_us": False}
    code = observed.rank_codes.get(rank)
    if report.present and first_only:
        return {"exit_code": code, "ended_at": ended_at, "ended_by_us": code is None}
    if report.present:
        # Without its PID, and not seen to end, it can't be told from a rank that torchrun ended.
        known = pid is not None or ended_at is not None or not report.closed
        return {"exit_code": 0 if known else code, "ended_at": ended_at, "ended_by_us": not known}
    if observed.exit_code == 0:
        return {"exit_code": 0, "ended_at": ended_at, "ended_by_us": False}
    if observed.gave_up and code is None and ended_at is not None:
        # torchrun lived on for longer than it takes to notice any other status.
        code = 0
    return {"exit_code": code, "ended_at": ended_at, "ended_by_us": ended_at is None}


def read_record(spec: LaunchSpec, rank: int) -> tuple[RankRecord | None, str, str]:
    """Read one rank's record: the record, its state (`GOOD`, `MISSING`, `BROKEN`) and what is wrong with it."""
    path = Path(spec.out_dir, contract.RANK_FILE.format(rank=rank))
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None, MISSING, ""
    except OSError as error:
        return None, BROKEN, f"left a record that can't be read ({error.strerror})"
    try:
        record = contract.decode(RankRecord, text, str(path))
    except contract.ContractError as error:
        cut = not _is_json(text)
        what = "left its record cut short" if cut else "wrote a record that does not keep to the contract"
        return None, BROKEN, f"{what}: {shorten(harmless(str(error)))}"
    for name, expected in (
        ("run", spec.run),
        ("launch", spec.launch),
        ("variant", spec.variant),
        ("rank", rank),
        ("world_size", spec.world_size),
    ):
        found = getattr(record, name)
        if found != expected:
            return None, BROKEN, f"wrote a record with {name} {found!r:.80}, where {expected!r} was launched"
    return record, GOOD, ""


def read_state(out_dir: str, rank: int) -> tuple[str | None, float | None]:
    """Read a rank's last phase and when it entered it; None where it wrote none."""
    try:
        state = json.loads(read_tail(Path(out_dir, contract.STATE_FILE.format(rank=rank)), STATE_BYTES))
        return shorten(harmless(str(state["phase"])), 40), float(state["time"])
    except (ValueError, KeyError, TypeError):
        return None, None


def rank_pids(spec: LaunchSpec) -> dict[int, int]:
    """Return the PIDs of the ranks that have entered a phase."""
    found = {}
    for rank in range(spec.world_size):
        try:
            state = json.loads(
                read_tail(Path(spec.out_dir, contract.STATE_FILE.format(rank=rank)), STATE_BYTES)
            )
            found[rank] = int(state["pid"])
        except (ValueError, KeyError, TypeError):
            continue
    return found


def why_unavailable(spec: LaunchSpec) -> str | None:
    """Return the reason that a rank gave for not having what was asked for; None where no rank gave one."""
    for rank in range(spec.world_size):
        path = Path(spec.out_dir, contract.STATE_FILE.format(rank=rank))
        try:
            state = json.loads(read_tail(path, STATE_BYTES))
            if state["phase"] == contract.UNAVAILABLE:
                return shorten(harmless(str(state["reason"])), 400)
        except (ValueError, KeyError, TypeError):
            continue
    return None


def read_gpus(out_dir: str, rank: int) -> tuple[str, ...]:
    """Read which GPUs a rank took; none where it had not come so far, or works on the CPU."""
    try:
        state = json.loads(read_tail(Path(out_dir, contract.STATE_FILE.format(rank=rank)), STATE_BYTES))
        return tuple(shorten(harmless(str(gpu)), 80) for gpu in state.get("gpus", ()))
    except (ValueError, AttributeError, TypeError):
        return ()


def read_log(spec: LaunchSpec, rank: int, direct: bool) -> tuple[str, list[str]]:
    """Return path and last lines of a rank's own log: its standard error, or its output where that is empty."""
    node, local = divmod(rank, spec.ranks_per_node)
    folder = Path(log_folder(spec, node))
    for name in (STDERR_FILE, STDOUT_FILE):
        paths = [Path(spec.out_dir, name)] if direct else folder.glob(f"*/attempt_*/{local}/{name}")
        for path in sorted(paths, key=_modified, reverse=True):
            lines = last_lines(read_tail(path))
            if lines:
                return str(path), lines
    return "", []


def read_dumps(out_dir: str, rank: int) -> tuple[Dump, ...]:
    """Read the stacks that a rank dumped, with the source line of each frame."""
    text = read_tail(Path(out_dir, contract.STACK_FILE.format(rank=rank)), REPORT_BYTES)
    return tuple(
        Dump(dump.timeout, tuple(_with_source(frame) for frame in dump.frames)) for dump in parse_dumps(text)
    )


def _with_source(frame: Frame) -> Frame:
    try:
        readable = os.path.isfile(frame.file) and os.path.getsize(frame.file) <= SOURCE_BYTES
    except (OSError, ValueError):
        readable = False
    return dataclasses.replace(frame, source=linecache.getline(frame.file, frame.line)) if readable else frame


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
