"""Which way NCCL's ranks talk to each other: asked for in the environment, read from NCCL's own log, told in words.

NCCL falls back without a word from peer-to-peer copies to shared memory to sockets, each several times slower than the
one before (nccl#1066: one cgroup a task hides the cards from each other). What it chose stands in its log alone.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from perf.contract import LaunchRecord, LaunchSpec

LOG_FILES = "nccl-*.log"

LOG_BYTES = 1 << 24
"""A log of one start has some hundred lines; more was asked for by the caller."""

# host:pid:tid [device] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/3/GDRDMA
CHANNEL = re.compile(
    r"NCCL INFO Channel \d+(?:/\d+)? : \d+\[[^\]]+\] -> \d+\[[^\]]+\](?: \[\w+\])? via (\S+)"
)

REMEDY = (
    "Look for NCCL_P2P_DISABLE and NCCL_SHM_DISABLE, at /dev/shm's size, and whether each task sees all GPUs of the "
    "job (--gpus-per-node, not --gpus-per-task). `nvidia-smi topo -m` shows what is possible."
)


def nccl_environment(spec: LaunchSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make NCCL write down which transports it chose.

    It writes while it connects, before the warm-up. What the caller set himself is left alone.
    """
    if spec.backend != "nccl" or spec.world_size < 2 or "NCCL_DEBUG" in environ:
        return {}
    # %h and %p are NCCL's own: host name and process.
    log = os.path.join(spec.out_dir, LOG_FILES.replace("*", "%h-%p"))
    return {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,P2P,SHM,NET", "NCCL_DEBUG_FILE": log}


def read_transports(out_dir: str) -> dict[str, int] | None:
    """Return how many channels use each transport, over all ranks; None where NCCL wrote no log. Reads the logs."""
    found: Counter[str] = Counter()
    logs = sorted(Path(out_dir).glob(LOG_FILES))
    for path in logs:
        try:
            with open(path, "rb") as log:
                found.update(parse_transports(log.read(LOG_BYTES).decode("utf-8", errors="replace")))
        except OSError:
            continue
    return dict(sorted(found.items())) if logs else None


def parse_transports(text: str) -> Counter[str]:
    """Count the transports in a log: ``P2P``, ``SHM``, ``NET/IB``, ``NET/Socket`` and whatever else NCCL names."""
    found: Counter[str] = Counter()
    for way in CHANNEL.findall(text):
        parts = way.split("/")
        found["/".join(parts[:2]) if parts[0] == "NET" else parts[0]] += 1
    return found


def transport_in_words(
    spec: LaunchSpec | LaunchRecord, transports: Mapping[str, int] | None
) -> tuple[bool, str, str]:
    """Return whether a launch's transport is as it should be, a sentence and a remedy."""
    if not transports:
        return True, "NCCL did not say which transport it chose.", ""
    ways = ", ".join(f"{way} ({count} channels)" for way, count in transports.items())
    over_net = sorted(way for way in transports if way.startswith("NET"))
    if spec.nodes == 1 and over_net:
        return (
            False,
            f"NCCL talks over {' and '.join(over_net)} between GPUs of one node: {ways}.",
            REMEDY,
        )
    return True, f"NCCL talks over {ways}.", ""
