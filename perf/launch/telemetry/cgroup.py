"""What the kernel counts for the whole node and for this cgroup: CPU, memory, pressure. Parsing apart from reading.

A scheduler that puts jobs into cgroups limits them there; where there is none, the node's own limits remain.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perf.machine import CgroupMount, cgroup_folders, cgroup_mounts, cgroup_paths

UNLIMITED = 2**60
"""cgroup v1 writes "no limit" as the largest number of pages that fits, near 2**63 bytes."""

RESOURCES = ("cpu", "memory", "io")


@dataclass(frozen=True)
class Folders:
    """The folders of this process's cgroup and its parents, innermost first, for memory and for CPU."""

    memory: tuple[Path, ...]
    cpu: tuple[Path, ...]
    version: int
    """Of the memory controller; 0 where there is none."""


def find_folders(root: Path = Path("/")) -> Folders:
    """Return where this process's cgroup is. Reads ``proc/self/cgroup`` and ``proc/self/mountinfo`` below `root`."""
    try:
        groups = cgroup_paths(_read(root / "proc/self/cgroup"))
        mounts = cgroup_mounts(_read(root / "proc/self/mountinfo"))
    except OSError:
        return Folders((), (), 0)

    def of(controller: str) -> tuple[tuple[Path, ...], int]:
        for mount in mounts:
            if mount.version == 1 and controller in mount.controllers and controller in groups:
                return tuple(_below(root, mount, groups[controller])), 1
        for mount in mounts:
            if mount.version == 2 and "" in groups:
                return tuple(_below(root, mount, groups[""])), 2
        return (), 0

    memory, version = of("memory")
    cpu, _ = of("cpu")
    return Folders(memory, cpu, version)


def memory_limit(folders: Folders) -> int | None:
    """Return the smallest memory limit over the cgroup and its parents, in bytes; None for none."""
    name = "memory.max" if folders.version == 2 else "memory.limit_in_bytes"
    limits = [number for folder in folders.memory if (number := _number(folder / name)) is not None]
    return min((limit for limit in limits if 0 < limit < UNLIMITED), default=None)


def memory_used(folders: Folders) -> tuple[int | None, int | None]:
    """Return memory in use and its peak since the cgroup exists, in bytes. The root's own group has neither in v2."""
    names = (
        ("memory.current", "memory.peak")
        if folders.version == 2
        else ("memory.usage_in_bytes", "memory.max_usage_in_bytes")
    )
    if not folders.memory:
        return None, None
    return _number(folders.memory[0] / names[0]), _number(folders.memory[0] / names[1])


def throttled_seconds(folders: Folders) -> float | None:
    """Return how long the cgroup's CPU quota has held its tasks back; None where nothing counts that."""
    if not folders.cpu:
        return None
    try:
        return parse_throttled(_read(folders.cpu[0] / "cpu.stat"))
    except OSError:
        return None


def pressure_seconds(folders: Folders, root: Path = Path("/")) -> dict[str, float]:
    """Return how long some task of this cgroup (else of the node) has waited for each resource, in seconds."""
    found = {}
    for resource in RESOURCES:
        places = [folder / f"{resource}.pressure" for folder in folders.cpu[:1]]
        for path in [*places, root / "proc/pressure" / resource]:
            try:
                seconds = parse_pressure(_read(path))
            except OSError:
                continue
            if seconds is not None:
                found[resource] = seconds
                break
    return found


def node_cpu_seconds(root: Path = Path("/")) -> tuple[float | None, float | None]:
    """Return CPU seconds of all processes on the node, and those that a hypervisor gave to others."""
    try:
        return parse_stat(_read(root / "proc/stat"), os.sysconf("SC_CLK_TCK"))
    except OSError:
        return None, None


def parse_throttled(text: str) -> float | None:
    """Parse ``cpu.stat``: v2 has microseconds under throttled_usec, v1 nanoseconds under throttled_time."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[1].isdigit():
            if fields[0] == "throttled_usec":
                return int(fields[1]) * 1e-6
            if fields[0] == "throttled_time":
                return int(fields[1]) * 1e-9
    return None


def parse_pressure(text: str) -> float | None:
    """Parse a pressure file: return the ``some`` line's total, which is in microseconds, in seconds."""
    for line in text.splitlines():
        if line.startswith("some "):
            for field in line.split():
                key, _, value = field.partition("=")
                if key == "total" and value.isdigit():
                    return int(value) * 1e-6
    return None


def parse_stat(text: str, ticks: int) -> tuple[float | None, float | None]:
    """Parse ``/proc/stat``: return busy and stolen seconds. Its fields count ticks: user, nice, system, idle, iowait,
    irq, softirq, steal; guest time is in user already.
    """  # noqa: D205 - the order of the fields is the sentence
    for line in text.splitlines():
        fields = line.split()
        if fields and fields[0] == "cpu" and len(fields) >= 9 and all(f.isdigit() for f in fields[1:9]):
            user, nice, system, _, _, irq, softirq, steal = (int(f) / ticks for f in fields[1:9])
            return user + nice + system + irq + softirq, steal
    return None, None


def _below(root: Path, mount: CgroupMount, path: str) -> Iterator[Path]:
    for folder in cgroup_folders(mount, path):
        yield root / folder.lstrip("/")


def _number(path: Path) -> int | None:
    try:
        text = _read(path).strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii", errors="replace")
