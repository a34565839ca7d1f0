"""Which programs a cluster on one machine needs, and which Debian package brings each.

As a command it ends with 1, and names the packages, where any is missing.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

PACKAGES: Mapping[str, str] = {
    "munged": "munge",
    "mungekey": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "slurmdbd": "slurmdbd",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "srun": "slurm-client",
    "squeue": "slurm-client",
    "scancel": "slurm-client",
    "scontrol": "slurm-client",
    "sacct": "slurm-client",
    "sacctmgr": "slurm-client",
}
"""Program, and the package of Debian 12 (and of Ubuntu 24.04, under the same names) that installs it."""

DATABASE = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")
"""What a cluster without accounting does without."""


def search_path(path: str | None = None) -> str:
    """Return a PATH that holds the folders of daemons too, which an ordinary user's does not."""
    return os.pathsep.join(
        [path or os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"]
    )


def missing(path: str | None = None, *, accounting: bool = True) -> list[str]:
    """Return the packages that would have to be installed, sorted; empty where every program is found on `path`."""
    where = search_path(path)
    wanted = [name for name in PACKAGES if accounting or name not in DATABASE]
    return sorted({PACKAGES[name] for name in wanted if shutil.which(name, path=where) is None})


def sentence(packages: list[str]) -> str:
    """Say what is missing and how to get it."""
    return (
        f"a Slurm for tests needs the packages {', '.join(packages)}. "
        f"Install them: apt-get install --no-install-recommends {' '.join(packages)}"
    )


if __name__ == "__main__":
    lacking = missing()
    if lacking:
        print(sentence(lacking), file=sys.stderr)
    sys.exit(1 if lacking else 0)
