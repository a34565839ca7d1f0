"""What a rank is doing, for whoever has to say why it hung: a phase file and a dump of every thread's stack."""

from __future__ import annotations

import faulthandler
import json
import os
import time
from typing import IO, Optional

from perf import contract
from perf.training.dumping import StackDump

DUMP_BEFORE_LIMIT = 0.9
"""Stacks are dumped when this share of the time limit has passed: before the driver sends its first signal."""

PATIENCE = 0.05
"""And this share later at most, where native code keeps the interpreter's lock: halfway to that signal. 0.4 s of the
shortest limit in use (8 s); a thread that runs Python gives the lock away within 5 ms."""

LEAST_SECONDS = 0.1
"""A timer of nothing is none; a limit that has nearly passed when the rank begins still gets its stacks."""


class State:
    """Writes ``state-<rank>.json`` whenever the rank enters another phase. Never called inside a timed window."""

    def __init__(self, out_dir: str, rank: int) -> None:
        self._path = os.path.join(out_dir, contract.STATE_FILE.format(rank=rank))
        self._stack_path = os.path.join(out_dir, contract.STACK_FILE.format(rank=rank))
        self._stack: Optional[IO[str]] = None
        self._dump: Optional[StackDump] = None
        self._gpus: list[str] = []

        self._rank = rank
        self._edge_path = os.path.join(out_dir, contract.EDGE_PIPE)
        self._edges: Optional[int] = None

    def takes(self, gpus: list[str]) -> None:
        """Remember which GPUs this rank works on: each later state names them, so that a dead rank's are known."""
        self._gpus = gpus

    def edge(self, opens: bool) -> float:
        """Tell whoever samples the machine that a window begins or ends; return the time (Unix) of it.

        A few microseconds, and never more: nobody may listen, or not read, and then nothing is told.
        """
        try:
            if self._edges is None:
                self._edges = os.open(self._edge_path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(self._edges, f"{self._rank} {'open' if opens else 'close'}\n".encode("ascii"))
        except OSError:
            # No pipe, no reader, or one that has fallen behind: telemetry then lacks the edges and says so.
            pass
        return time.time()

    def enter(self, phase: str) -> None:
        """Note that the rank enters `phase`."""
        state = {"phase": phase, "time": time.time(), "pid": os.getpid(), "gpus": self._gpus}
        contract.write_whole(self._path, json.dumps(state))

    def watch(self, time_limit_seconds: float, passed_seconds: float = 0.0) -> None:
        """Arm the dump of all threads' stacks, those of a rank that hangs in native code too.

        `passed_seconds` of the limit are over already: the driver counts from the launch's start, and the imports of a
        slow machine take long.
        """
        self._stack = open(self._stack_path, "w", encoding="utf-8")  # noqa: SIM115 - faulthandler keeps it
        faulthandler.enable(self._stack)
        seconds = max(LEAST_SECONDS, DUMP_BEFORE_LIMIT * time_limit_seconds - passed_seconds)
        left = max(LEAST_SECONDS, time_limit_seconds - passed_seconds - seconds)
        self._dump = StackDump(self._stack, seconds, min(PATIENCE * time_limit_seconds, left / 2.0))

    def unavailable(self, reason: str) -> None:
        """Note that this stack or device lacks what the launch asks for, for the driver to say."""
        contract.write_whole(
            self._path,
            json.dumps(
                {"phase": contract.UNAVAILABLE, "time": time.time(), "pid": os.getpid(), "reason": reason}
            ),
        )

    def done(self) -> None:
        """Disarm the dump."""
        if self._dump is not None:
            self._dump.call_off()
        faulthandler.disable()
        if self._stack is not None:
            self._stack.close()
        self.enter("done")
