"""Which process is which rank, and which of them ended first. torchrun tells neither while it runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping

import psutil

from perf.launch.processes import exit_code_of_zombie, is_gone
from perf.whole import whole

DISCOVERY_SECONDS = 0.5
"""Looking for the ranks reads all of /proc, which costs milliseconds on a big node. It stops when all are known, long
before anything is timed; from then on a look costs a few microseconds a rank."""


MISSING_SECONDS = 5.0
"""torchrun starts the ranks of a node one after another, in milliseconds each. One that is still not there this long
after another one was has ended between two looks."""


class RankWatch:
    """Follows the ranks of one launch from outside.

    Parameters
    ----------
    root
        The process that was started: torchrun, or the only rank itself.
    ranks
        How many ranks the launch has on this node.
    direct
        Whether the root is rank 0.
    find
        Returns the processes among which the ranks are; None for those below the root.
    elsewhere
        Ranks that other nodes have: they can't be seen from here, and none of them counts as missing.
    named
        Returns the PIDs of ranks that have said theirs; for forks, whose environment /proc does not show. None of them
        counts as missing: their agent, which started them, says how they ended.
    """

    def __init__(
        self,
        root: psutil.Process,
        ranks: int,
        direct: bool,
        find: Callable[[], Iterable[psutil.Process]] | None = None,
        elsewhere: int = 0,
        named: Callable[[], Mapping[int, int]] | None = None,
    ) -> None:
        self._root = root
        self._ranks = ranks
        self._find = find or (lambda: root.children(recursive=True))
        self._elsewhere = elsewhere
        self._named = named
        self._next_discovery = 0.0
        self._first_found_at: float | None = None
        self.processes: dict[int, psutil.Process] = {0: root} if direct else {}
        self.ended_at: dict[int, float] = {}
        self.exit_codes: dict[int, int] = {}

    def look(self) -> None:
        """Note which ranks have appeared and which have ended. Times are those of ``time.monotonic``."""
        now = time.monotonic()
        if len(self.processes.keys() | self.ended_at.keys()) < self._ranks and now >= self._next_discovery:
            self._next_discovery = now + DISCOVERY_SECONDS
            self._discover(now)
        for rank, process in self.processes.items():
            if rank in self.ended_at:
                continue
            # Asked before `is_gone`: a zombie shows its exit status only until its parent has asked for it.
            code = exit_code_of_zombie(process.pid)
            if is_gone(process):
                self.ended_at[rank] = now
                if code is not None:
                    self.exit_codes[rank] = code

    def alive(self) -> dict[int, psutil.Process]:
        """Return the known ranks that had not ended when last looked at."""
        return {rank: process for rank, process in self.processes.items() if rank not in self.ended_at}

    def _discover(self, now: float) -> None:
        try:
            below = self._find()
        except psutil.NoSuchProcess:
            return
        found = self._by_name() if self._named else self._by_variable(below)
        for rank, process in found.items():
            self.processes.setdefault(rank, process)
        # Forks name themselves once they have read their data, which takes each its own time.
        if self._elsewhere or self._named:
            return
        if self._first_found_at is None and self.processes:
            self._first_found_at = now
        if self._first_found_at is not None and now - self._first_found_at > MISSING_SECONDS:
            for rank in set(range(self._ranks)) - self.processes.keys():
                self.ended_at[rank] = self._first_found_at

    def _by_name(self) -> dict[int, psutil.Process]:
        found = {}
        for rank, pid in (self._named() if self._named else {}).items():
            with contextlib.suppress(psutil.NoSuchProcess):
                found[rank] = psutil.Process(pid)
        return found

    def _by_variable(self, below: Iterable[psutil.Process]) -> dict[int, psutil.Process]:
        found: dict[int, psutil.Process] = {}
        # Loader workers inherit their rank's variables; the rank is older than they are.
        for process in sorted(below, key=_started):
            rank = _rank_of(process)
            if rank is not None and rank < self._ranks + self._elsewhere:
                found.setdefault(rank, process)
        return found


def _rank_of(process: psutil.Process) -> int | None:
    try:
        value = process.environ().get("RANK", "")
    except (psutil.Error, OSError):
        return None
    return whole(value)


def _started(process: psutil.Process) -> float:
    try:
        return float(process.create_time())
    except psutil.Error:
        return float("inf")
