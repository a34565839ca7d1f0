"""The wait for a launch: until it ends, passes its time limit, can't succeed any more, or the driver is told to end."""

from __future__ import annotations

import contextlib
import enum
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from perf import contract
from perf.contract import LaunchSpec
from perf.launch.flight import ask_for_traces
from perf.launch.processes import GRACE_SECONDS
from perf.launch.server import Fork, Started
from perf.launch.watch import RankWatch

HELD = {psutil.STATUS_STOPPED: "stopped by a signal", psutil.STATUS_DISK_SLEEP: "stuck in the kernel"}
"""States of a process that explain why it neither goes on nor dumps a stack."""


@dataclass(frozen=True)
class Patience:
    """How long the launcher waits, in seconds.

    Parameters
    ----------
    look
        Between two looks at the processes. A look costs microseconds, so it does not disturb what is timed.
    grace
        From SIGTERM to SIGKILL.
    victims
        After a rank ended without a record, until the launch is given up. torchrun ends the others by itself, but for
        exit status 0, and needs up to 5 s to notice (before torch 2.4).
    stacks
        After the time limit, until every rank has dumped its stacks: a rank counts its limit from its own start, which
        is seconds after the launcher's.
    """

    look: float = 0.1
    grace: float = GRACE_SECONDS
    victims: float = 15.0
    stacks: float = 5.0


class Over(enum.Enum):
    """Why the wait is over."""

    ENDED = "the process has ended"
    LIMIT = "the time limit has passed"
    GAVE_UP = "a rank ended without a record and nobody noticed"
    INTERRUPTED = "the driver was told to end"


class Waiting:
    """Waits for one launch.

    Parameters
    ----------
    spec
        What was launched.
    process
        What was started.
    watch
        Who follows its ranks.
    interrupted
        Whether the driver was told to end.
    patience
        How long to wait for what.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        process: Started,
        watch: RankWatch,
        interrupted: Callable[[], bool],
        patience: Patience,
    ) -> None:
        self._spec = spec
        self._process = process
        self._watch = watch
        self._interrupted = interrupted
        self._patience = patience
        self._deadline = time.monotonic() + spec.time_limit_seconds
        self.ended_at: float | None = None
        self.kernel_states: dict[int, str] = {}

    def until_over(self) -> Over:
        """Wait. At the time limit, wait on for the ranks' stacks and note what the kernel says of each."""
        while True:
            if self._has_ended():
                # One look more: what ended since the last one must not count as having been alive.
                self._watch.look()
                return Over.ENDED
            self._watch.look()
            if self._interrupted():
                return Over.INTERRUPTED
            if self._limit_passed():
                return self._past_limit()
            if self._hopeless():
                return Over.GAVE_UP
            self._pause()

    def _pause(self) -> None:
        """Wait for the next look, or for a fork's end: its server tells of it, where a process would be asked often."""
        if isinstance(self._process, Fork):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._patience.look)
        else:
            time.sleep(self._patience.look)

    def _limit_passed(self) -> bool:
        return time.monotonic() >= self._deadline

    def _past_limit(self) -> Over:
        for rank, process in self._watch.alive().items():
            try:
                held = HELD.get(process.status())
            except psutil.Error:
                held = None
            if held is not None:
                self.kernel_states[rank] = held
        ask_for_traces(self._spec)
        until = time.monotonic() + self._patience.stacks
        while not self._stacks_are_there() and time.monotonic() < until and not self._interrupted():
            time.sleep(self._patience.look)
            self._watch.look()
            if self._has_ended():
                return Over.ENDED
        return Over.LIMIT

    def _has_ended(self) -> bool:
        if self._process.poll() is None:
            return False
        if self.ended_at is None:
            self.ended_at = time.monotonic()
        return True

    def _hopeless(self) -> bool:
        """Say whether a rank ended without a record so long ago that torchrun would have noticed any error."""
        now = time.monotonic()
        return any(
            now - ended_at > self._patience.victims and not self._file(contract.RANK_FILE, rank).exists()
            for rank, ended_at in self._watch.ended_at.items()
        )

    def _stacks_are_there(self) -> bool:
        """Say whether each rank that still runs, and can, has dumped its stacks; whole ones end in a module's frame."""
        for rank in range(self._spec.ranks_per_node):
            if rank in self._watch.ended_at or rank in self.kernel_states:
                continue
            path = self._file(contract.STACK_FILE, rank)
            try:
                dumped = "in <module>" in path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                dumped = False
            if not dumped:
                return False
        return True

    def _file(self, name: str, rank: int) -> Path:
        return Path(self._spec.out_dir, name.format(rank=rank))
