"""What the node and its limits leave for a launch, read before it starts. Touches the world; judges nothing."""

from __future__ import annotations

import os
import resource
import socket

from perf.launch.stack import Stack
from perf.launch.telemetry.amd import open_amd
from perf.launch.telemetry.node import VISIBLE
from perf.launch.telemetry.nvml import open_nvml
from perf.launch.telemetry.reading import GpuReading


def soft_limit(which: int) -> int | None:
    """Return a limit of this process, which its children inherit; None for no limit."""
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def tasks_left() -> int | None:
    """Return how many processes and threads this user may still start; None for no limit. Reads /proc."""
    limit = soft_limit(resource.RLIMIT_NPROC)
    # The kernel does not hold root to it.
    if limit is None or os.getuid() == 0:
        return None
    used = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                used += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return max(0, limit - used)


def read_cards(stack: Stack) -> list[GpuReading]:
    """Return the stack's GPUs as their driver sees them; none where it can't be asked. Loads the driver's library."""
    uuids = [gpu.get("uuid") for gpu in stack.facts.get("gpus") or ()]
    if not uuids:
        return []
    kind, opener = ("amdsmi", open_amd) if stack.facts.get("hip") else ("nvml", open_nvml)
    visible = next((os.environ[name] for name in VISIBLE[kind] if name in os.environ), None)
    source, _ = opener(uuids, visible)
    if source is None:
        return []
    try:
        return source.read()
    finally:
        source.close()


def free_port() -> tuple[int | None, str]:
    """Return a TCP port that was free on the loopback a moment ago, or None and why. Opens a socket."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            return int(listener.getsockname()[1]), ""
    except OSError as error:
        return None, error.strerror or str(error)
