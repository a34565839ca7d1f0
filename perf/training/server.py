"""``python -m perf.training.server SOCKET``: a process that has imported torch, and forks a launch when it is asked.

A launch spends most of its time importing. This process does that once; a launch is then a fork of it, with its own
session, environment and logs, and writes the same records as a fresh start. It never touches a GPU and never computes
with a tensor: a fork after either hangs or fails.

It connects to the driver's socket and speaks JSON lines. A request holds ``spec`` (path), ``environ`` (all of it),
``stdout`` and ``stderr`` (paths), ``torchrun`` (its arguments, null where the launch has a single process) and
``cores`` (numbers of those that it is bound to). The answers are ``{"started": PID}`` and
``{"ended": PID, "status": STATUS}``. When the driver is gone, so are the launches.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Iterator
from typing import Any, Optional

import torch

from perf.training import worker

REAP_SECONDS = 0.02
"""How often ended launches are looked for: far less than a launch takes, and nothing beside what it costs."""

END_SECONDS = 5.0
"""From SIGTERM to SIGKILL where the driver has gone: nobody waits for a record any more."""


class Server:
    """Forks launches for one driver."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = b""
        self._running: set[int] = set()

    def serve(self) -> None:
        """Answer requests until the driver closes the connection; then end what still runs."""
        self._say({"ready": os.getpid()})
        try:
            while self._take():
                self._reap()
        finally:
            self._end_all()

    def _take(self) -> bool:
        """Wait a moment for requests and start what they ask for; return whether the driver is still there."""
        wait = REAP_SECONDS if self._running else None
        if not select.select([self._connection], [], [], wait)[0]:
            return True
        try:
            data = self._connection.recv(1 << 20)
        except ConnectionError:
            return False
        self._received += data
        *whole, self._received = self._received.split(b"\n")
        for line in whole:
            self._start(json.loads(line))
        return bool(data)

    def _start(self, request: dict[str, Any]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        forked = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            # Never back into the loop above, whatever happens.
            status = 1
            try:
                self._connection.close()
                status = launched(request, forked)
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except BaseException:  # noqa: BLE001 - a fork must not become a second server
                traceback.print_exc()
            finally:
                leave(status)
        self._running.add(pid)
        self._say({"started": pid})

    def _reap(self) -> None:
        for pid in list(self._running):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._running.discard(pid)
                self._say({"ended": pid, "status": status})

    def _say(self, message: dict[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # The driver has gone; the next look at the connection notices.
            return

    def _end_all(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._running:
                try:
                    # A launch leads a session, so its ranks are of its group unless they made one of their own.
                    os.killpg(pid, number)
                except OSError:
                    continue
            deadline = time.monotonic() + END_SECONDS
            while self._running and time.monotonic() < deadline:
                self._reap()
                time.sleep(REAP_SECONDS)


def launched(request: dict[str, Any], forked: float) -> int:
    """Become the launch that a request asks for; return its exit status. Runs in the fork.

    Parameters
    ----------
    request
        As the module's docstring says.
    forked
        ``time.perf_counter()`` when the fork was asked for.
    """
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _redirect(request["stdout"], 1)
    _redirect(request["stderr"], 2)
    # torch and NCCL read the C library's environment, which this changes too.
    os.environ.clear()
    os.environ.update(request["environ"])
    os.sched_setaffinity(0, request["cores"])
    if request["torchrun"] is None:
        return rank(request["spec"], forked)
    return under_torchrun(request["torchrun"], request["spec"], forked)


def rank(spec: str, forked: float) -> int:
    """Run one rank, which was forked at `forked`."""
    worker.forked_at = forked
    return worker.main([spec])


def under_torchrun(arguments: list[str], spec: str, forked: float) -> int:
    """Run torchrun's own agent, whose ranks are forks of it; return its exit status."""
    from torch.distributed.launcher.api import elastic_launch

    elastic_launch(config=agent_config(arguments, spec), entrypoint=ranked)(spec, forked)
    return 0


def agent_config(arguments: list[str], spec: str) -> Any:
    """Return the configuration of torchrun's agent for its own command line, with ranks that are forks.

    The options are taken as torchrun takes them, so that rendezvous, logs and the report of a failure are torchrun's.
    """
    from torch.distributed.run import config_from_args, parse_args

    parsed = parse_args([*arguments, spec])
    if parsed.standalone:
        # What torchrun's own `run` makes of the option; its configuration alone does not.
        parsed.rdzv_backend, parsed.rdzv_endpoint, parsed.rdzv_id = "c10d", "localhost:0", str(uuid.uuid4())
    # Since torch 2.11 the configuration counts GPUs, to bind ranks to NUMA nodes, which the worker does itself. Asked
    # of CUDA, the ranks that this process forks could not use theirs.
    with _no_gpus_seen():
        config, _, _ = config_from_args(parsed)
    config.start_method = "fork"
    return config


@contextlib.contextmanager
def _no_gpus_seen() -> Iterator[None]:
    """Let torch see no GPU in this process, so that nothing here initializes CUDA."""
    modules: list[Any] = [torch.cuda, *([torch.accelerator] if hasattr(torch, "accelerator") else [])]
    plain = [module.is_available for module in modules]
    for module in modules:
        module.is_available = lambda: False
    try:
        yield
    finally:
        for module, function in zip(modules, plain):
            module.is_available = function


def ranked(spec: str, forked: float) -> None:
    """Run one rank of several and end its process with the rank's exit status."""
    try:
        status = rank(spec, forked)
    except Exception:
        # torch writes what a function raises to a file of its own and to no log; a script's traceback is in its log.
        traceback.print_exc()
        raise
    sys.exit(status)


def leave(status: int) -> None:
    """End this process as an interpreter ends, but for what belongs to the server alone."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def why_unfit() -> Optional[str]:
    """Return why this process must not be forked any more; None if it may."""
    if torch.cuda.is_initialized():
        return "importing torch and torchvision has initialized CUDA, and a fork of such a process can't use a GPU"
    return None


def _redirect(path: str, descriptor: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(handle, descriptor)
    os.close(handle)


def main(arguments: list[str]) -> int:
    """Connect to the driver and serve it; return the exit status."""
    if len(arguments) != 1:
        print("usage: python -m perf.training.server SOCKET", file=sys.stderr)
        return 2
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(arguments[0])
    reason = why_unfit()
    if reason is not None:
        connection.sendall(json.dumps({"unfit": reason}).encode() + b"\n")
        return 3
    # Ctrl-C in a terminal reaches every process of it; the driver decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Server(connection).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
