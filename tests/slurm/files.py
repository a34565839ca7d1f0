"""The folder of a cluster: its configuration, its secrets, and places for what the daemons write."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from pathlib import Path

from tests.slurm import config
from tests.slurm.config import Layout


def write_files(layout: Layout) -> None:
    """Write everything that the daemons read, and make the folders that they write into."""
    root = layout.root
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)  # munged refuses a socket that not everybody can reach
    for name in ("log", "pids", "state", "munge", "database", "cgroup", *layout.names):
        (root / name).mkdir()
    for node in layout.names:
        (root / node / "spool").mkdir()
        for gpu in range(layout.gpus):
            # slurmd wants a device.
            device = f"{layout.devices}{gpu}" if layout.devices else "/dev/null"
            (root / node / f"gpu{gpu}").symlink_to(device)
    password = secrets.token_hex(16)
    texts = {
        "slurm.conf": config.slurm_conf(layout),
        "gres.conf": config.gres_conf(layout),
        "cgroup.conf": config.cgroup_conf(layout),
        "cluster.json": json.dumps({**asdict(layout), "root": str(root)}, indent=1) + "\n",
    }
    private = {
        "slurmdbd.conf": config.slurmdbd_conf(layout, password),
        "database.sql": config.database_sql(password),
    }
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    for name, text in private.items():
        (root / name).touch(mode=0o600)
        (root / name).write_text(text, encoding="utf-8")


def read_layout(root: Path) -> Layout:
    """Return the layout that `write_files` left in a folder."""
    try:
        fields = json.loads((root / "cluster.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{root} holds no cluster: cluster.json is missing there.") from error
    fields.update(root=Path(fields["root"]), nodes=tuple(fields["nodes"]), names=tuple(fields["names"]))
    return Layout(**fields)
