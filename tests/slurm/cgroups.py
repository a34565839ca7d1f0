"""The control groups with which Slurm limits a job's memory: taken where the machine lets us, and given back.

slurmd 22.05 makes one group a node, /sys/fs/cgroup/<controller>/slurm_<node>, whatever cgroup.conf says. So a cluster
claims these names by making them, and does without memory limits where somebody else has one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
LIMIT = "memory.limit_in_bytes"


def claim(nodes: Sequence[str], mount: Path = MOUNT) -> bool:
    """Make the memory groups of these nodes, and say whether they are ours now.

    False where the machine has no control groups v1 that we may write, or where a group of such a name exists. v2 is
    not used: Slurm 22.05 wants systemd for it, or to write into groups that are the machine's own.
    """
    if os.geteuid() != 0 or not (mount / "freezer").is_dir():
        return False
    made = []
    for node in nodes:
        group = mount / "memory" / f"slurm_{node}"
        try:
            group.mkdir()
            made.append(group)
            if not os.access(group / LIMIT, os.W_OK):
                raise PermissionError(f"{group / LIMIT} can't be written")
        except OSError:
            for each in made:
                with contextlib.suppress(OSError):
                    each.rmdir()
            return False
    return True


def release(nodes: Sequence[str], mount: Path = MOUNT) -> list[Path]:
    """Remove the groups of these nodes below every controller; return those that would not go."""
    left = []
    for node in nodes:
        for top in sorted(mount.glob(f"*/slurm_{node}")):
            # Deepest first: a group with children can't be removed. The files in it are the kernel's, and go with it.
            inside = [path for path in top.rglob("*") if path.is_dir()]
            for folder in [*sorted(inside, key=lambda path: -len(path.parts)), top]:
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    left.append(folder)
    return left
