"""What a rank is doing, for whoever has to say why it did not end: its phase, its threads' stacks, its last steps."""

from __future__ import annotations

import faulthandler
import json
import os
import time
from typing import IO, Callable, Optional

from perf import contract
from perf.training.dumping import StackDump

DUMP_BEFORE_LIMIT = 0.9
"""Stacks are dumped when this share of the time limit has passed: before the driver sends its first signal."""

PATIENCE = 0.05
"""And this share later at most, where native code keeps the interpreter's lock: halfway to that signal. A thread that
runs Python gives the lock away within 5 ms (`sys.getswitchinterval`), long before."""

LEAST_SECONDS = 0.1
"""A timer of nothing is none; a limit that has nearly passed when the rank begins still gets its stacks."""


class State:
    """Writes ``state-<rank>.json`` whenever the rank enters another phase. Never called inside a timed window."""

    def __init__(self, out_dir: str, rank: int) -> None:
        self._path = os.path.join(out_dir, contract.STATE_FILE.format(rank=rank))
        self._stack_path = os.path.join(out_dir, contract.STACK_FILE.format(rank=rank))
        self._progress_path = os.path.join(out_dir, contract.PROGRESS_FILE.format(rank=rank))
        self._stack: Optional[IO[str]] = None
        self._dump: Optional[StackDump] = None
        self._patience = 0.0
        self._steps: Optional[Callable[[], int]] = None
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
        self._patience = min(PATIENCE * time_limit_seconds, left / 2.0)
        self._dump = StackDump(self._stack, seconds, self._patience, self._tell_progress)

    def counts(self, steps: Callable[[], int]) -> None:
        """Remember what tells how many steps this rank has taken: it is asked twice when the time is nearly over."""
        self._steps = steps

    def _tell_progress(self, called_off: Callable[[float], bool]) -> None:
        """Write how many steps the rank takes in a moment: one that is slow is told from one that is stuck."""
        if self._steps is None:
            return
        before, began = self._steps(), time.monotonic()
        if called_off(self._patience):
            return
        steps = self._steps()
        found = {"steps": steps, "taken": steps - before, "seconds": time.monotonic() - began}
        try:
            contract.write_whole(self._progress_path, json.dumps(found))
        except OSError:
            # The disk is full, say. The stacks are told all the same.
            return

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
