"""Launches as forks of a process that has imported torch already, one such server a stack and environment.

Variables that torch, OpenMP or the loader of libraries read as they start
would be ignored by a fork, so each environment has a server of its own. What CUDA reads as a launch first uses it, and
the cores that a launch is bound to, are the launch's own: one server serves launches on all GPUs and cores.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from perf import contract
from perf.launch.cores import bound
from perf.launch.environment import MARKER
from perf.launch.server import CannotFork, Fork, Server
from perf.launch.stack import Stack

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
        told: Callable[[], bool] = lambda: False,
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
        told
            Whether the driver was told to end: nothing is waited for then.

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
            own = os.path.dirname(spec)
            server = self._server(stack, environment, own, told)
            try:
                return server.fork(request, told)
            except CannotFork:
                # Else it could take the request up when somebody else is measured.
                self._servers.pop(self._key(stack, environment, own)[0]).close()
                raise
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

    def serves(self, stack: Stack, environment: Mapping[str, str], folder: str) -> bool:
        """Whether there is a server for launches like this one, for parameters of `start`."""
        found = self._servers.get(self._key(stack, environment, folder)[0])
        return found is not None and not self._is_used_up(found)

    def _is_used_up(self, server: Server) -> bool:
        return bool(self._launches) and server.forked >= self._launches

    @staticmethod
    def _key(
        stack: Stack, environment: Mapping[str, str], own: str
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the key of the server for a launch whose folder is `own`, and what it is started in."""
        # What is one launch's own, and the folder that it writes to, is nothing that a process reads as it starts.
        late = LATE_ON_AMD if stack.facts.get("hip") else LATE
        shared = {name: value for name, value in environment.items() if name not in late and own not in value}
        words = [f"{name}={shared[name]}" for name in sorted(shared)]
        return (*stack.before(), stack.python, *words), shared

    def _server(
        self,
        stack: Stack,
        environment: Mapping[str, str],
        own: str,
        told: Callable[[], bool] = lambda: False,
    ) -> Server:
        """Return the server for a launch, started if need be."""
        key, shared = self._key(stack, environment, own)
        if key in self._servers and self._is_used_up(self._servers[key]):
            self._servers.pop(key).close()
        if key not in self._servers:
            with bound(self._cores):
                self._servers[key] = Server(stack, shared, self._log, told)
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
