"""What this machine is and how much of it we may use: cores, memory, /dev/shm, scheduler variables, the suite itself.

The functions that parse take text and return values; those that read files say so in their first line.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
"""The folder that holds `perf` and `models`: what the worker is started in, so that it finds both."""

GIT_SECONDS = 10.0
"""A git that has to read a slow home file system may take seconds; environment.json is not worth more."""

SCHEDULER_PREFIXES = ("SLURM_", "LSB_", "PBS_")

TELLING = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "MKL_NUM_THREADS",
    "KMP_AFFINITY",
    "GOMP_CPU_AFFINITY",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "LD_PRELOAD",
    "LOADEDMODULES",
    "CONDA_PREFIX",
    "VIRTUAL_ENV",
    "SINGULARITY_NAME",
    "APPTAINER_NAME",
)
TELLING_PREFIXES = ("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_", "RCCL_", "MIOPEN_")
"""Variables that change how fast training is. Any other is left out: an environment also holds secrets."""

SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|JWT|COOKIE|PRIVATE|_KEY$", re.IGNORECASE)


class CgroupMount(NamedTuple):
    """Where a cgroup hierarchy is mounted: `root` is the path inside the hierarchy that `point` shows."""

    root: str
    point: str
    version: int
    controllers: frozenset[str]


def cores_allowed() -> int:
    """Return how many cores this process may use: its affinity, limited by the cgroup's quota. Reads /proc and /sys.

    A quota of 3.5 cores counts as 3: work planned for 4 would be throttled in every period.
    """
    allowed = len(os.sched_getaffinity(0))
    quota = cpu_quota(Path("/"))
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def cpu_quota(root: Path) -> float | None:
    """Return the smallest CPU quota, in cores, over this process's cgroups and their parents; None without one.

    Reads ``proc/self/cgroup``, ``proc/self/mountinfo`` and the quota files below `root`.
    """
    try:
        groups = cgroup_paths(_read(root / "proc/self/cgroup"))
        mounts = cgroup_mounts(_read(root / "proc/self/mountinfo"))
    except OSError:
        return None
    quotas: list[float | None] = []
    for mount in mounts:
        key = "" if mount.version == 2 else "cpu"
        if key not in groups or (mount.version == 1 and "cpu" not in mount.controllers):
            continue
        folders = cgroup_folders(mount, groups[key])
        quotas += [_quota_of(root / folder.lstrip("/"), mount.version) for folder in folders]
    return min((quota for quota in quotas if quota is not None), default=None)


def cgroup_paths(text: str) -> dict[str, str]:
    """Parse ``/proc/self/cgroup``: return the path of each v1 controller, and of the v2 hierarchy under the key ''."""
    paths = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                paths[controller] = parts[2]
    return paths


def cgroup_mounts(text: str) -> list[CgroupMount]:
    """Parse ``/proc/self/mountinfo``: return the cgroup mounts in it."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not dash or len(left) < 5 or len(right) < 3 or right[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if right[0] == "cgroup2" else 1
        mounts.append(
            CgroupMount(_unescape(left[3]), _unescape(left[4]), version, frozenset(right[2].split(",")))
        )
    return mounts


def cgroup_folders(mount: CgroupMount, path: str) -> list[str]:
    """Return the folders of a cgroup and of its parents, innermost first, as far as the mount shows them.

    A limit of a parent holds for its children. Inside a container the mount may show a part of the hierarchy only,
    or the path may lie outside of it (``/../…``); then the mount's own top is what applies.
    """
    root = mount.root.rstrip("/")
    inside = path == mount.root or path.startswith(root + "/")
    parts = [part for part in path[len(root) :].split("/") if part] if inside and ".." not in path else []
    return ["/".join([mount.point.rstrip("/"), *parts[:depth]]) for depth in range(len(parts), -1, -1)]


def quota_v2(text: str) -> float | None:
    """Parse ``cpu.max`` (quota and period in microseconds, or ``max``): return cores, None for no limit."""
    fields = text.split()
    if not fields or fields[0] == "max":
        return None
    return _cores(fields[0], fields[1] if len(fields) > 1 else "100000")


def quota_v1(quota: str, period: str) -> float | None:
    """Parse ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us``: return cores, None for no limit (-1)."""
    return _cores(quota, period)


def system_facts(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what ``environment.json`` says of this machine and of the suite. Reads /proc and the repository.

    Sizes are in bytes. A fact that can't be had is null.
    """
    variables = os.environ if environ is None else environ
    return {
        "host": socket.gethostname(),
        "user": _user(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "distribution": _or_none(lambda: platform.freedesktop_os_release().get("PRETTY_NAME")),
        "cpu_model": _or_none(lambda: cpu_model(_read(Path("/proc/cpuinfo"))))
        or platform.processor()
        or None,
        "cores": os.cpu_count(),
        "cores_allowed": cores_allowed(),
        "cores_allowed_ids": sorted(os.sched_getaffinity(0)),
        "memory_bytes": _or_none(lambda: os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
        "shared_memory_bytes": _or_none(lambda: shared_memory_bytes()[0]),
        "python": platform.python_version(),
        "variables": telling_variables(variables),
        "suite": suite_facts(REPOSITORY),
    }


def shared_memory_bytes(path: str = "/dev/shm") -> tuple[int, int]:
    """Return size and free bytes of the shared-memory file system. Reads it; OSError where there is none."""
    status = os.statvfs(path)
    return status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail


def cpu_model(cpuinfo: str) -> str | None:
    """Parse ``/proc/cpuinfo``: return the first CPU's model (x86 ``model name``, POWER ``cpu``), None elsewhere."""
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() in ("model name", "cpu") and value.strip():
            return value.strip()
    return None


def telling_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that say which job this is and that change how fast it is; never one that looks secret."""
    return {
        name: environ[name]
        for name in sorted(environ)
        if (name in TELLING or name.startswith(SCHEDULER_PREFIXES + TELLING_PREFIXES))
        and not SECRET.search(name)
    }


def suite_facts(repository: Path) -> dict[str, Any]:
    """Return the suite's version, its commit and whether files were changed since. Reads pyproject.toml, runs git."""
    version = None
    try:
        version = tomllib.loads(_read(repository / "pyproject.toml"))["project"]["version"]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError):
        # An unpacked copy may lack the file; the commit then says enough.
        pass
    commit = _git(repository, "rev-parse", "--verify", "HEAD")
    changes = _git(repository, "status", "--porcelain", "--untracked-files=no") if commit else None
    return {"version": version, "commit": commit, "changed": None if changes is None else bool(changes)}


def _git(repository: Path, *arguments: str) -> str | None:
    """Run git in `repository`; None where there is no git, no repository or no answer."""
    if not (repository / ".git").exists():
        # Without this, git would look in the parent folders and report some other repository's commit.
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _quota_of(folder: Path, version: int) -> float | None:
    try:
        if version == 2:
            return quota_v2(_read(folder / "cpu.max"))
        return quota_v1(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
    except OSError:
        # The top of a hierarchy has no quota file.
        return None


def _cores(quota: str, period: str) -> float | None:
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return cores if cores > 0 else None


def _unescape(path: str) -> str:
    """Undo mountinfo's octal escapes of space, tab, line feed and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        return None


def _or_none(read: Any) -> Any:
    try:
        return read()
    except (OSError, ValueError):
        return None
