"""Launches as forks of a process that has imported torch already, one such server a stack and environment.

The other end is ``perf.training.server``. Variables that torch, OpenMP or the loader of libraries read as they start
would be ignored by a fork, so each environment has a server of its own. What CUDA reads as a launch first uses it, and
the cores that a launch is bound to, are the launch's own: one server serves launches on all GPUs and cores.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from perf import contract
from perf.launch.cores import bound
from perf.launch.environment import MARKER
from perf.launch.stack import Stack
from perf.launch.text import last_lines, read_tail
from perf.machine import REPOSITORY

SERVER = "perf.training.server"

READY_SECONDS = 180.0
"""The first import of torch on a busy parallel file system has taken minutes (`perf.launch.stack.PROBE_SECONDS`)."""

LATE = frozenset(
    {
        MARKER,
        contract.STARTED,
        "CUDA_VISIBLE_DEVICES",
        # Of `perf.launch.nccl` and `perf.launch.flight`, which a launch of several ranks has and one of one has not.
        "NCCL_DEBUG",
        "NCCL_DEBUG_SUBSYS",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
    }
)
"""Variables that nothing reads as a server starts: CUDA and NCCL read their own at their first use, which no server
makes. (A library that writes down what is asked of getenv saw none of them while torch 2.14 and torchvision were
imported, and OMP_NUM_THREADS, MKL_NUM_THREADS and TORCH_DISTRIBUTED_DEBUG among 143 others.)"""

LATE_ON_AMD = LATE - {"CUDA_VISIBLE_DEVICES"}
"""HIP takes CUDA's variable too, and nobody promises that its runtime waits for its first use."""

STOP_SECONDS = 10.0
"""A server whose connection was closed ends what it started, within 10 s, and itself."""


class CannotFork(Exception):
    """A stack can't be launched by fork. The message says why."""


class Started(Protocol):
    """A process that was started: `subprocess.Popen`, or a fork."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Return its exit status (negative: a signal), or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for it; raise `subprocess.TimeoutExpired` where that takes longer."""


class Fork:
    """A launch that a server forked."""

    def __init__(self, server: Server, pid: int) -> None:
        self._server = server
        self.pid = pid

    def poll(self) -> int | None:
        """Return its exit status, or None while it runs."""
        return self._server.status_of(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(["fork", str(self.pid)], timeout or 0.0)
            time.sleep(0.02)
        return status


class Server:
    """One server process.

    Parameters
    ----------
    stack
        Whose Python it runs.
    environment
        What it is started in.
    log
        File that takes what it says itself; launches have logs of their own.

    Raises
    ------
    CannotFork
        If it does not become ready.
    """

    def __init__(self, stack: Stack, environment: Mapping[str, str], log: Path) -> None:
        # A socket's path may hold 107 bytes, which a run's folder may not leave.
        self._folder = tempfile.mkdtemp(prefix="stackproof-")
        self._received = b""
        self._started: list[int] = []
        self._ended: dict[int, int] = {}
        self._gone = False
        try:
            self._connection = self._start(stack, environment, log)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _start(self, stack: Stack, environment: Mapping[str, str], log: Path) -> socket.socket:
        path = os.path.join(self._folder, "socket")
        with socket.socket(socket.AF_UNIX) as listener, log.open("ab") as out:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(0.2)
            self._process = subprocess.Popen(
                [*stack.before(), stack.python, "-m", SERVER, path],
                cwd=REPOSITORY,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            connection = self._accept(listener, log)
        connection.settimeout(READY_SECONDS)
        first = self._read_line(connection)
        if "ready" not in first:
            connection.close()
            raise CannotFork(str(first.get("unfit", "its server did not become ready")))
        connection.setblocking(False)
        return connection

    def _accept(self, listener: socket.socket, log: Path) -> socket.socket:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                return listener.accept()[0]
            except TimeoutError:
                self._check_start(deadline, log)

    def _check_start(self, deadline: float, log: Path) -> None:
        if self._process.poll() is not None:
            lines = last_lines(read_tail(log))
            raise CannotFork(
                f"its server ended with status {self._process.returncode}: {lines[-1] if lines else 'no output'}"
            )
        if time.monotonic() > deadline:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise CannotFork(f"its server was not ready after {READY_SECONDS:g} s")

    def _read_line(self, connection: socket.socket) -> dict[str, Any]:
        data = b""
        while not data.endswith(b"\n"):
            more = connection.recv(65536)
            if not more:
                return {}
            data += more
        found: dict[str, Any] = json.loads(data)
        return found

    def fork(self, request: Mapping[str, Any]) -> Fork:
        """Start a launch.

        Raises
        ------
        CannotFork
            If the server has gone.
        """
        known = len(self._started)
        self._connection.setblocking(True)
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise CannotFork(f"its server has gone ({error.strerror})") from error
        finally:
            self._connection.setblocking(False)
        deadline = time.monotonic() + READY_SECONDS
        while len(self._started) == known:
            self._receive(1.0)
            if self._gone or time.monotonic() > deadline:
                raise CannotFork("its server has gone" if self._gone else "its server does not answer")
        return Fork(self, self._started[-1])

    @property
    def forked(self) -> int:
        """Launches that it has started."""
        return len(self._started)

    def status_of(self, pid: int) -> int | None:
        """Return the exit status of a launch, or None while it runs."""
        self._receive(0.0)
        if pid not in self._ended and self._gone:
            # Nobody can ask for the status any more. The server's end is the launch's end.
            return -signal.SIGKILL
        return self._ended.get(pid)

    def _receive(self, wait: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            if not selector.select(wait):
                return
        try:
            data = self._connection.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._gone = not data
        *whole, self._received = (self._received + data).split(b"\n")
        for line in whole:
            message = json.loads(line)
            if "started" in message:
                self._started.append(message["started"])
            elif "ended" in message:
                self._ended[message["ended"]] = os.waitstatus_to_exitcode(message["status"])

    def close(self) -> None:
        """End the server and what it started."""
        self._connection.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Servers:
    """The servers of one driver: a context that ends them.

    Parameters
    ----------
    log
        File that takes what they say.
    launches
        After so many a server is ended and the next launch gets a new one, so that launches are not all forks of one
        process; 0: never.
    cores
        Cores of the servers themselves; those of the process where left out. Each launch has those that whoever asks
        for it is bound to.
    """

    def __init__(self, log: Path, launches: int = 0, cores: Collection[int] | None = None) -> None:
        self._log = log
        self._launches = launches
        self._cores = cores
        self._servers: dict[tuple[str, ...], Server] = {}
        self._unfit: dict[str, str] = {}

    def why_not(self, stack: Stack) -> str | None:
        """Return why a stack can't be launched by fork; None if that was not found out."""
        return self._unfit.get(stack.python)

    def fork(
        self,
        stack: Stack,
        environment: Mapping[str, str],
        *,
        spec: str,
        stdout: str,
        stderr: str,
        torchrun: Sequence[str] | None,
    ) -> Fork:
        """Start a launch as a fork of the server of its stack and environment, which is started if need be.

        It runs on the cores that this thread is bound to.

        Parameters
        ----------
        environment
            Of the launch.
        spec
            Path of the launch's spec, in the launch's own folder.
        stdout, stderr
            Paths of its logs.
        torchrun
            torchrun's arguments up to the module; None for a single process.

        Raises
        ------
        CannotFork
            If the stack can't be launched so; `why_not` remembers it.
        """
        request = {
            "spec": spec,
            "environ": dict(environment),
            "stdout": stdout,
            "stderr": stderr,
            "torchrun": None if torchrun is None else list(torchrun),
            "cores": sorted(os.sched_getaffinity(0)),
        }
        try:
            return self._server(stack, environment, os.path.dirname(spec)).fork(request)
        except CannotFork as error:
            self._unfit[stack.python] = str(error)
            raise

    def start(self, stack: Stack, environment: Mapping[str, str], folder: str) -> float:
        """Start the server of a stack and environment, if there is none yet; return how many seconds that took.

        Parameters
        ----------
        environment, folder
            Of a launch.

        Raises
        ------
        CannotFork
            As `fork`.
        """
        began = time.monotonic()
        try:
            self._server(stack, environment, folder)
        except CannotFork as error:
            self._unfit[stack.python] = str(error)
            raise
        return time.monotonic() - began

    def _server(self, stack: Stack, environment: Mapping[str, str], own: str) -> Server:
        """Return the server for a launch whose folder is `own`."""
        # What is one launch's own, and the folder that it writes to, is nothing that a process reads as it starts.
        late = LATE_ON_AMD if stack.facts.get("hip") else LATE
        shared = {name: value for name, value in environment.items() if name not in late and own not in value}
        words = [f"{name}={shared[name]}" for name in sorted(shared)]
        key = (*stack.before(), stack.python, *words)
        if self._launches and key in self._servers and self._servers[key].forked >= self._launches:
            self._servers.pop(key).close()
        if key not in self._servers:
            with bound(self._cores):
                self._servers[key] = Server(stack, shared, self._log)
        return self._servers[key]

    def close(self) -> None:
        """End all servers."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
