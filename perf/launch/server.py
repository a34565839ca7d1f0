"""One process that has imported torch and forks launches: the driver's end of ``perf.training.server``."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from perf.launch.stack import Stack
from perf.launch.text import last_lines, read_tail
from perf.machine import REPOSITORY

SERVER = "perf.training.server"

READY_SECONDS = 180.0
"""The first import of torch on a busy parallel file system has taken minutes (`perf.launch.stack.PROBE_SECONDS`)."""

ANSWER_LOOK_SECONDS = 0.2
"""Between two looks whether the driver was told to end meanwhile."""

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
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0.0:
                raise subprocess.TimeoutExpired(["fork", str(self.pid)], timeout or 0.0)
            self._server.listen(left)
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
    told
        Whether the driver was told to end, while signals are only noted: waiting ends then.

    Raises
    ------
    CannotFork
        If it does not become ready.
    """

    def __init__(
        self,
        stack: Stack,
        environment: Mapping[str, str],
        log: Path,
        told: Callable[[], bool] = lambda: False,
    ) -> None:
        # A socket's path may hold 107 bytes, which a run's folder may not leave.
        self._folder = tempfile.mkdtemp(prefix="stackproof-")
        self._received = b""
        self._started: list[int] = []
        self._ended: dict[int, int] = {}
        self._gone = False
        try:
            self._connection = self._start(stack, environment, log, told)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _start(
        self, stack: Stack, environment: Mapping[str, str], log: Path, told: Callable[[], bool]
    ) -> socket.socket:
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
            try:
                return self._greeted(listener, log, told)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
                raise

    def _greeted(self, listener: socket.socket, log: Path, told: Callable[[], bool]) -> socket.socket:
        """Wait until the server has imported torch, and return the connection to it."""
        deadline = time.monotonic() + READY_SECONDS
        connection: socket.socket | None = None
        data = b""
        try:
            while not data.endswith(b"\n"):
                # Asked before its words are taken: what it said at its end is the better reason.
                gone = self._process.poll() is not None
                with contextlib.suppress(TimeoutError):
                    if connection is None:
                        connection = listener.accept()[0]
                        connection.settimeout(listener.gettimeout())
                    more = connection.recv(65536)
                    data += more
                    gone = not more
                self._check_start(gone, deadline, log, told)
            first: dict[str, Any] = json.loads(data)
            if "ready" not in first:
                raise CannotFork(str(first.get("unfit", "its server did not become ready")))
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        assert connection is not None
        connection.setblocking(False)
        return connection

    def _check_start(self, gone: bool, deadline: float, log: Path, told: Callable[[], bool]) -> None:
        """Raise where there is no more to wait for."""
        if gone:
            # Its status may come a moment after its connection is closed.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            lines = last_lines(read_tail(log))
            raise CannotFork(
                f"its server ended with status {self._process.returncode}: {lines[-1] if lines else 'no output'}"
            )
        if told():
            raise CannotFork("the driver was told to end")
        if time.monotonic() > deadline:
            raise CannotFork(f"its server was not ready after {READY_SECONDS:g} s")

    def fork(self, request: Mapping[str, Any], told: Callable[[], bool] = lambda: False) -> Fork:
        """Start a launch.

        Parameters
        ----------
        request
            Of `perf.training.server`.
        told
            As of the server itself.

        Raises
        ------
        CannotFork
            If the server has gone, or does not answer. It may still take the request up later: close it.
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
            self.listen(ANSWER_LOOK_SECONDS)
            if self._gone or time.monotonic() > deadline:
                raise CannotFork("its server has gone" if self._gone else "its server does not answer")
            if told():
                raise CannotFork("the driver was told to end")
        return Fork(self, self._started[-1])

    @property
    def forked(self) -> int:
        """Launches that it has started."""
        return len(self._started)

    def status_of(self, pid: int) -> int | None:
        """Return the exit status of a launch, or None while it runs."""
        self.listen(0.0)
        if pid not in self._ended and self._gone:
            # Nobody can ask for the status any more. The server's end is the launch's end.
            return -signal.SIGKILL
        return self._ended.get(pid)

    def listen(self, wait: float | None) -> None:
        """Take what the server says next, waiting for it so many seconds at most; None: however long that takes."""
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
                # The number may be one that an earlier launch had.
                self._ended.pop(message["started"], None)
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
