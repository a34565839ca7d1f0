"""The environment of the stack's processes: the caller's, without what belongs to the driver. Pure but for paths."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MARKER = "STACKPROOF_LAUNCH"
"""Set for every process of a launch. Children inherit it, so a process that was orphaned can still be found."""

DRIVER = "STACKPROOF_DRIVER"
"""Set likewise; names the driver's process, so that the left-overs of a driver that was killed can be told apart."""

DROPPED = frozenset(
    {
        # What an outer torchrun tells its own ranks; a worker would take itself for one of them.
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "ROLE_NAME",
        "ROLE_RANK",
        "ROLE_WORLD_SIZE",
        # torchrun starts this instead of the stack's Python.
        "PYTHON_EXEC",
        # Takes the working directory off sys.path, where the worker finds `perf`.
        "PYTHONSAFEPATH",
        # torchrun's log level: its warnings name the ranks that it ended itself, and failure.py needs them.
        "LOGLEVEL",
        MARKER,
        DRIVER,
    }
)
DROPPED_PREFIXES = (
    "MASTER_",
    "TORCHELASTIC_",
    # torchrun reads each of its options from PET_<OPTION> as well.
    "PET_",
    # The driver's own pytest is no business of the worker's.
    "PYTEST_",
)


@dataclass(frozen=True)
class Driver:
    """The driver's own Python, as far as its packages could leak into the stack.

    `prefix` is its environment's folder, '' where it has none of its own; `folders` are those that its own packages
    were loaded from. A driver that was started with ``-E`` does not read PYTHONPATH: the variable is then meant for
    the stack alone.
    """

    prefix: str
    folders: frozenset[str]
    reads_python_path: bool

    @classmethod
    def this(cls) -> Driver:
        """Describe the running driver. Packages that every torch brings along say nothing, pytest's origin does."""
        origins = (
            getattr(sys.modules.get(name), "__file__", None) for name in ("pytest", "_pytest", "msgspec")
        )
        folders = frozenset(os.path.realpath(Path(origin).parent.parent) for origin in origins if origin)
        # The prefix of a system's Python is /usr, which holds much that is no driver's.
        own = sys.prefix != sys.base_prefix or os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
        return cls(sys.prefix if own else "", folders, not sys.flags.ignore_environment)


def stack_environment(environ: Mapping[str, str], driver: Driver | None = None) -> dict[str, str]:
    """Return `environ` without what belongs to the driver: what any Python of the stack is started in."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in DROPPED and not name.startswith(DROPPED_PREFIXES)
    }
    if "PYTHONPATH" in kept:
        path = stack_python_path(kept.pop("PYTHONPATH"), driver or Driver.this())
        if path:
            kept["PYTHONPATH"] = path
    return kept


def stack_python_path(value: str, driver: Driver) -> str:
    """Return the part of PYTHONPATH that is the stack's.

    A site's module puts the stack's packages there, so the variable can't simply be dropped. Entries of the driver
    are: its environment, and, where it reads the variable itself, the folders that its own packages came from.
    Relative entries would point into the repository, where the worker is started.
    """
    prefix = os.path.realpath(driver.prefix) + os.sep if driver.prefix else None
    kept = []
    for entry in value.split(os.pathsep):
        if not os.path.isabs(entry):
            continue
        real = os.path.realpath(entry)
        inside = prefix is not None and (real + os.sep).startswith(prefix)
        # A module that carries torch and pytest alike is the stack, whoever else took pytest from it.
        shared = (
            driver.reads_python_path
            and real in driver.folders
            and not os.path.isdir(os.path.join(real, "torch"))
        )
        if not inside and not shared:
            kept.append(entry)
    return os.pathsep.join(kept)
