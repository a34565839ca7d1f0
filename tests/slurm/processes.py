"""Daemons that outlive the command that starts them, and that are found and ended again by what is on disk."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil


class DaemonError(RuntimeError):
    """A daemon ended by itself or did not begin to serve."""


@dataclass(frozen=True)
class Running:
    """A process that we started. Its start time tells it from a later one with the same number."""

    name: str
    pid: int
    created: float

    def process(self) -> psutil.Process | None:
        """Return the process, or None where it has ended."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) < 0.1  # /proc counts in ticks of 0.01 s
            return process if same and lives(process) else None
        except psutil.NoSuchProcess:
            return None


def start(name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Running:
    """Start a daemon in a session of its own, its output appended to log/NAME.out, and note it in pids/NAME.json.

    `command` begins with the program's whole path.
    """
    log = folder / "log" / f"{name}.out"
    # Not a Popen, which would complain when it is forgotten: the daemon is meant to outlive us.
    pid = os.posix_spawn(
        command[0],
        list(command),
        dict(environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    running = identify(name, pid)
    note(running, folder)
    return running


def identify(name: str, pid: int) -> Running:
    """Return what tells a running process from every other one."""
    return Running(name, pid, psutil.Process(pid).create_time())


def note(running: Running, folder: Path) -> None:
    """Write a process down below `folder`."""
    (folder / "pids" / f"{running.name}.json").write_text(json.dumps(asdict(running)), encoding="utf-8")


def known(folder: Path) -> dict[str, Running]:
    """Return what was started for a folder, by name, whether it still runs or not."""
    found = {}
    for path in sorted((folder / "pids").glob("*.json")):
        running = Running(**json.loads(path.read_text(encoding="utf-8")))
        found[running.name] = running
    return found


def stop(running: Running, folder: Path, seconds: float = 20.0) -> None:
    """End a daemon: SIGTERM, and after `seconds` SIGKILL. One that has ended already is only forgotten."""
    process = running.process()
    if process is not None:
        end([process], seconds)
    (folder / "pids" / f"{running.name}.json").unlink(missing_ok=True)


def end(running: Sequence[psutil.Process], seconds: float) -> None:
    """End processes: SIGTERM, and after `seconds` SIGKILL."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        for process in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal_number)
        limit = time.monotonic() + seconds
        while any(lives(process) for process in running):
            if time.monotonic() > limit:
                break
            time.sleep(0.05)
        else:
            return


def lives(process: psutil.Process) -> bool:
    """Say whether a process still runs. A zombie does not: whoever its parent is may take seconds to notice."""
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.is_running()
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(0)  # reaps it where it is our own child
    except psutil.NoSuchProcess:
        pass
    return False


def kill(running: Sequence[psutil.Process]) -> None:
    """Kill processes at once, in this order."""
    for process in running:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def variable(process: psutil.Process, name: str) -> str:
    """Return a variable of a process' environment; empty where it has none, has ended or is somebody else's."""
    try:
        return process.environ().get(name, "")
    except (psutil.Error, OSError):
        return ""


def parent(process: psutil.Process, name: str) -> psutil.Process | None:
    """Return the nearest process of that name above another one, or None."""
    try:
        return next((each for each in process.parents() if each.name().startswith(name)), None)
    except psutil.Error:
        return None


def of_environment(name: str, value: str) -> list[psutil.Process]:
    """Return every process of this machine, except this one, that has the variable `name` set to `value`."""
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and variable(process, name) == value
    ]


def wait_for(
    what: str, ready: Callable[[], bool], running: Running, folder: Path, seconds: float = 60.0
) -> None:
    """Wait until a daemon serves.

    Raises
    ------
    DaemonError
        It ended, or is not ready after `seconds`; with the end of what it said.
    """
    limit = time.monotonic() + seconds
    while not ready():
        if running.process() is None:
            raise DaemonError(f"{running.name} ended before {what}.\n{said(running.name, folder)}")
        if time.monotonic() > limit:
            raise DaemonError(
                f"{running.name}: still not {what} after {seconds:g} s.\n{said(running.name, folder)}"
            )
        time.sleep(0.1)


def said(name: str, folder: Path, lines: int = 20) -> str:
    """Return the last lines of a daemon's logs, each file with its name."""
    parts = []
    for path in (folder / "log" / f"{name}.out", folder / "log" / f"{name}.log"):
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").splitlines()
            parts.append("\n".join([f"--- {path}", *text[-lines:]]))
    return "\n".join(parts)
