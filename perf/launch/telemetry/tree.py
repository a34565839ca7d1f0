"""The launch's processes as the kernel sees them: CPU seconds and memory, summed over the tree. Reads /proc."""

from __future__ import annotations

from pathlib import Path

import psutil


class ProcessTree:
    """A process and all below it.

    Parameters
    ----------
    root
        PID of the process that was started: torchrun, or the only rank.
    """

    def __init__(self, root: int) -> None:
        self._processes: dict[int, psutil.Process] = {}
        try:
            self._root: psutil.Process | None = psutil.Process(root)
        except psutil.NoSuchProcess:
            self._root = None

    @property
    def process_ids(self) -> list[int]:
        """The processes that were there when last looked for."""
        return sorted(self._processes)

    def discover(self) -> None:
        """Look for the processes of the tree. Reads all of /proc, which costs milliseconds on a big node."""
        self._processes = {}
        if self._root is None or not self._root.is_running():
            return
        try:
            found = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        self._processes = {process.pid: process for process in found}

    def cpu_seconds(self) -> float | None:
        """Return user and system seconds of the tree since it began; None once it is gone.

        A process carries those of its children that ended and were awaited: loader workers of earlier epochs are in
        their rank's, a rank's in torchrun's.
        """
        seconds: list[float] = []
        for process in self._processes.values():
            try:
                times = process.cpu_times()
            except (psutil.Error, OSError):
                continue
            seconds.append(times.user + times.system + times.children_user + times.children_system)
        return sum(seconds) if seconds else None

    def pss_bytes(self) -> int | None:
        """Return the memory of the tree, shared pages counted once; None where the kernel does not say.

        The sum of RSS would count what loader workers share with their rank once for each. Walks the page tables of
        every process under its lock, so never inside a timed window.
        """
        sizes = [size for pid in self._processes if (size := pss_of(pid)) is not None]
        return sum(sizes) if sizes else None


def pss_of(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return a process's proportional share of memory in bytes; None where it is gone or the kernel lacks it."""
    try:
        text = (proc / str(pid) / "smaps_rollup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return parse_pss(text)


def parse_pss(text: str) -> int | None:
    """Parse ``smaps_rollup``: return its ``Pss`` in bytes."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields = value.split()
        if key == "Pss" and fields and fields[0].isdigit():
            return int(fields[0]) * 1024
    return None
