"""A Slurm to play with, of two nodes: `python tests/slurm/up.py DIR`, and `python tests/slurm/up.py down DIR`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a script, from wherever

from tests.slurm.cluster import Cluster


def main(words: list[str] | None = None) -> int:
    """Start or stop a cluster, and say how to use it."""
    words = list(sys.argv[1:] if words is None else words)
    down = bool(words) and words[0] == "down"
    parser = argparse.ArgumentParser(
        prog="python tests/slurm/up.py",
        description=__doc__,
        epilog="`down DIR` cancels its jobs, ends its daemons and removes the folder.",
    )
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="new folder of the cluster, below a short path"
    )
    if not down:
        parser.add_argument(
            "--gpus",
            type=int,
            default=0,
            metavar="N",
            help="one node with this machine's cores and N of its GPUs",
        )
        parser.add_argument("--no-accounting", action="store_true", help="without MariaDB and slurmdbd")
    arguments = parser.parse_args(words[1:] if down else words)
    try:
        if down:
            Cluster.load(arguments.folder).remove()
            return 0
        cluster = Cluster.create(
            arguments.folder, accounting=not arguments.no_accounting, gpus=arguments.gpus
        )
        cluster.start()
    except (OSError, ValueError, RuntimeError) as error:
        print(f"up.py: {error}", file=sys.stderr)
        return 1
    for name, value in cluster.variables.items():
        print(f"export {name}={shlex.quote(value)}")
    stop = f"python {sys.argv[0]} down {shlex.quote(str(cluster.root))}"
    print(f"# sinfo; srun --nodes={len(cluster.layout.names)} hostname. To stop: {stop}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
