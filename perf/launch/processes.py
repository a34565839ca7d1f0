"""Find and end the processes of a launch, wherever they went.

torchrun's ranks are in sessions of their own, so killing a process group misses them, and a killed torchrun leaves
them orphaned. They are found as descendants and by a variable that all of them inherit.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from perf.launch.environment import DRIVER, MARKER
from perf.whole import whole

GRACE_SECONDS = 10.0
"""From SIGTERM to SIGKILL: torchrun and the ranks need a moment to close NCCL and logs; Slurm grants 30 s in all."""

KILL_SECONDS = 5.0
"""A process that SIGKILL has not ended by then sits in the kernel (a hung driver or file system); waiting is no use."""

LOOK_SECONDS = 0.05

STAT_START_TIME = 19
"""Place of the start time (field 22 of /proc/PID/stat) among the fields after the program's name."""

STAT_EXIT_CODE = 49
"""Place of the exit status (field 52) likewise; it is filled in while the ended process waits for its parent."""


def is_gone(process: psutil.Process) -> bool:
    """Say whether a process has ended. A zombie has: it only waits for its parent to ask."""
    try:
        return not process.is_running() or process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def descendants(root: psutil.Process) -> list[psutil.Process]:
    """Return a process and all below it that have not ended."""
    try:
        below = root.children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    return [process for process in [root, *below] if not is_gone(process)]


def own_processes(belongs: Callable[[dict[str, str]], bool]) -> list[psutil.Process]:
    """Return this user's processes (never this one or one above it) whose environment `belongs` accepts."""
    kept = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid in kept or process.uids().real != os.getuid() or not belongs(process.environ()):
                continue
        except (psutil.Error, OSError):
            # Ended meanwhile, or of another privilege than its user number says.
            continue
        if not is_gone(process):
            found.append(process)
    return found


def marked(value: str) -> list[psutil.Process]:
    """Return this user's processes that carry the mark of one launch."""
    return own_processes(lambda environ: environ.get(MARKER) == value)


def in_session(leader: int) -> list[psutil.Process]:
    """Return the processes of a session that have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and not is_gone(process):
                found.append(process)
        except OSError:
            continue
    return found


def driver_mark() -> str:
    """Return what names this process among all that ever ran here: PID namespace, PID and start time."""
    fields = _stat(os.getpid())
    return f"{_namespace()}/{os.getpid()}/{fields[STAT_START_TIME] if fields else 0}"


def left_over() -> list[psutil.Process]:
    """Return this user's processes of launches whose driver is gone: it was killed before it could end them.

    Processes of a driver in another PID namespace (a container) are left alone: its number means nothing here.
    """

    def orphaned(environ: dict[str, str]) -> bool:
        namespace, _, rest = environ.get(DRIVER, "").partition("/")
        number, _, started = rest.partition("/")
        pid = whole(number)
        if namespace != _namespace() or pid is None:
            return False
        fields = _stat(pid)
        return not fields or fields[STAT_START_TIME] != started or fields[0] in ("Z", "X")

    return own_processes(orphaned)


def end_all(
    find: Callable[[], Iterable[psutil.Process]],
    grace: float = GRACE_SECONDS,
    hurry: Callable[[], bool] = lambda: False,
) -> list[psutil.Process]:
    """End every process that `find` returns, also those that appear meanwhile: SIGTERM, grace, SIGKILL.

    Parameters
    ----------
    find
        Called again and again; the processes that are still to be ended.
    grace
        Seconds from SIGTERM to SIGKILL.
    hurry
        Asked while waiting; true ends the grace at once.

    Returns
    -------
    list of psutil.Process
        Those that outlived SIGKILL. Empty but for processes that are stuck in the kernel.
    """
    known: dict[psutil.Process, None] = {}

    def alive() -> list[psutil.Process]:
        known.update(dict.fromkeys(find()))
        return [process for process in known if not is_gone(process)]

    waiting = alive()
    for process in waiting:
        _signal(process, signal.SIGTERM)
        # A stopped process gets no signal but SIGKILL until it goes on.
        _signal(process, signal.SIGCONT)
    deadline = time.monotonic() + grace
    while waiting and time.monotonic() < deadline and not hurry():
        time.sleep(LOOK_SECONDS)
        waiting = [process for process in waiting if not is_gone(process)]
    deadline = time.monotonic() + KILL_SECONDS
    # One look more after the last was ended: an orphan may have started a process between look and signal.
    while waiting := alive():
        for process in waiting:
            _signal(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            return waiting
        time.sleep(LOOK_SECONDS)
    return []


def exit_code_of_zombie(pid: int) -> int | None:
    """Return the exit status (negative: the signal) of an ended process that its parent has not asked for yet."""
    fields = _stat(pid)
    if len(fields) <= STAT_EXIT_CODE or fields[0] != "Z":
        return None
    return os.waitstatus_to_exitcode(int(fields[STAT_EXIT_CODE]))


def _signal(process: psutil.Process, signum: signal.Signals) -> None:
    try:
        process.send_signal(signum)
    except psutil.Error:
        # Ended meanwhile, which is what was wanted.
        return


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat behind the program's name, [] where there is no such process."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return []


def _namespace() -> str:
    """Return whose process numbers are meant: this boot of this host (ranks may run on others), this container's."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return "unknown"
