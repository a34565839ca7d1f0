"""No scheduler: jobs are processes of this machine, for a node that is nobody else's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence

import psutil

from perf.cluster.environment import job_environment
from perf.cluster.scheduler import Phase, Request, SchedulerError, Seen, Usage
from perf.launch.processes import is_gone

CANCEL_SECONDS = 20.0
"""From SIGTERM to SIGKILL: the driver in the job ends its launch first, which may take 15 s."""


class Local:
    """Runs jobs as processes. A job's id is its process's number and start time, so that no later one is meant."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = job_environment(os.environ if environ is None else environ)
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def submit_words(self, request: Request) -> list[str]:
        """Return the command that runs the script."""
        return ["bash", str(request.script)]

    def submit(self, request: Request) -> str:
        """Start a job in a session of its own."""
        try:
            with open(request.output, "ab") as output:
                child = subprocess.Popen(
                    self.submit_words(request),
                    cwd=request.folder,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise SchedulerError(f"job {request.name} can't be started here: {error}") from error
        job = f"{child.pid}.{int(psutil.Process(child.pid).create_time() * 100)}"
        self._children[job] = child
        return job

    def query(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return the jobs that run, and those of this process that have ended."""
        found = {}
        for job in jobs:
            child = self._children.get(job)
            if child is not None and child.poll() is not None:
                found[job] = _ended(child.returncode)
            elif (process := _process(job)) is not None:
                found[job] = Seen(Phase.RUNNING, "RUNNING", nodes="this node", started=process.create_time())
        return found

    def account(self, jobs: Sequence[str], since: float) -> dict[str, tuple[Seen, Usage]] | None:
        """Return nothing: nobody keeps accounts here."""
        return None

    def describe(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return nothing beyond `query`."""
        return {}

    def cancel(self, jobs: Sequence[str]) -> None:
        """End jobs: SIGTERM to the script and its pytest, SIGKILL later."""
        found = [process for job in jobs if (process := _process(job)) is not None]
        for process in found:
            _signal_session(process.pid, signal.SIGTERM)
        psutil.wait_procs(found, timeout=CANCEL_SECONDS)
        for process in found:
            if not is_gone(process):
                _signal_session(process.pid, signal.SIGKILL)

    def hosts(self) -> list[str]:
        """Return this node."""
        return [socket.gethostname()]


def _ended(code: int) -> Seen:
    phase = Phase.COMPLETED if code == 0 else Phase.FAILED
    killed = -code if code < 0 else 0
    return Seen(phase, phase.name, status=max(code, 0), signal=killed)


def _process(job: str) -> psutil.Process | None:
    pid, _, started = job.partition(".")
    try:
        process = psutil.Process(int(pid))
        same = int(process.create_time() * 100) == int(started)
    except (psutil.Error, ValueError):
        return None
    return process if same and not is_gone(process) else None


def _signal_session(pid: int, signum: signal.Signals) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        # It ended meanwhile, which is what was wanted.
        return
