"""One look at this node: its GPUs, the launch's process tree, the cgroup. Touches the world; decides nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from perf.launch.telemetry import cgroup
from perf.launch.telemetry.amd import open_amd
from perf.launch.telemetry.nvml import open_nvml
from perf.launch.telemetry.reading import GpuSource, Header, HostReading, Sample
from perf.launch.telemetry.tree import ProcessTree
from perf.machine import cores_allowed, cpu_quota

VISIBLE = {
    "nvml": ("CUDA_VISIBLE_DEVICES",),
    "amdsmi": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}
"""Variables that say which cards a launch sees, the first that is set counts."""


class NodeLook:
    """Looks at this node.

    Parameters
    ----------
    source
        Readings of the GPUs; None where there are none or they can't be read.
    problems
        What can't be read and why.
    interval
        Seconds between two looks, for the header.
    """

    def __init__(self, source: GpuSource | None, problems: dict[str, str], interval: float) -> None:
        self._source = source
        self._interval = interval
        self._folders = cgroup.find_folders()
        self._tree: ProcessTree | None = None
        self._root = 0
        self.problems = problems

    @classmethod
    def open(cls, kind: str, wanted: Sequence[str | None], interval: float) -> NodeLook:
        """Open the library of one kind of GPU: ``nvml``, ``amdsmi`` or ``none``."""
        source: GpuSource | None = None
        problem = ""
        if kind in VISIBLE:
            visible = next((os.environ[name] for name in VISIBLE[kind] if name in os.environ), None)
            source, problem = open_nvml(wanted, visible) if kind == "nvml" else open_amd(wanted, visible)
        return cls(source, {"GPUs": problem} if problem else {}, interval)

    def follow(self, root: int) -> None:
        """Follow the processes below `root` from now on."""
        self._root = root
        self._tree = ProcessTree(root)

    def header(self, host: str) -> Header:
        """Return what does not change while a launch runs, and what could not be read so far."""
        problems = {**self.problems, **(self._source.problems if self._source else {})}
        return Header(
            host=host,
            source=self._source.name if self._source else "",
            interval_seconds=self._interval,
            cores_allowed=cores_allowed(),
            cpu_quota_cores=cpu_quota(Path("/")),
            memory_limit_bytes=cgroup.memory_limit(self._folders),
            memory_total_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            problems=problems,
        )

    def look(self, why: str, may_sum: bool) -> Sample:
        """Return what is to be seen now. `may_sum` allows to sum the memory of the processes, which disturbs them."""
        now = time.time()
        # The counters first: at a window's edge each millisecond counts for them.
        gpus = self._source.read() if self._source else []
        tree = self._tree
        if tree is not None and (why != "tick" or may_sum or not tree.process_ids):
            tree.discover()
        busy, steal = cgroup.node_cpu_seconds()
        used, peak = cgroup.memory_used(self._folders)
        ids = tree.process_ids if tree is not None else []
        host = HostReading(
            processes=len(ids) if tree is not None else None,
            cpu_seconds_total=tree.cpu_seconds() if tree is not None else None,
            pss_bytes=tree.pss_bytes() if tree is not None and may_sum else None,
            busy_seconds_total=busy,
            steal_seconds_total=steal,
            throttled_seconds_total=cgroup.throttled_seconds(self._folders),
            pressure_seconds_total=cgroup.pressure_seconds(self._folders),
            memory_used_bytes=used,
            memory_peak_bytes=peak,
        )
        return Sample(now, why, host, gpus, ids if gpus else [])

    def close(self) -> None:
        """Let go of the GPUs' library."""
        if self._source is not None:
            self._source.close()
