"""Which rank this process is, and on which device it works."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

import torch

from perf import contract


@dataclass(frozen=True)
class Identity:
    """One rank of a launch: its numbers, host and devices (more than one under DataParallel only)."""

    rank: int
    world_size: int
    local_rank: int
    host: str
    devices: list[torch.device]

    @property
    def device(self) -> torch.device:
        """The device that holds the rank's parameters."""
        return self.devices[0]

    @property
    def is_cuda(self) -> bool:
        """Whether the devices are GPUs (ROCm's count as CUDA in torch)."""
        return self.device.type == "cuda"


class DeviceMissing(RuntimeError):
    """The launch asks for a device that this process does not see."""


def identify(device: str, devices_per_rank: int, environ: Mapping[str, str]) -> Identity:
    """Read rank, world size and local rank from torchrun's variables and choose the devices, which stay untouched.

    Without torchrun the process is rank 0 of 1.

    Raises
    ------
    DeviceMissing
        If fewer GPUs are visible than the rank needs.
    """
    rank = int(environ.get("RANK", "0"))
    world_size = int(environ.get("WORLD_SIZE", "1"))
    local_rank = int(environ.get("LOCAL_RANK", "0"))
    if device == "cpu":
        devices = [torch.device("cpu")]
    else:
        first = local_rank * devices_per_rank
        visible = torch.cuda.device_count()
        if first + devices_per_rank > visible:
            raise DeviceMissing(
                f"rank {rank} needs GPUs {first} to {first + devices_per_rank - 1}, but torch sees {visible}; "
                f"CUDA_VISIBLE_DEVICES is {environ.get('CUDA_VISIBLE_DEVICES', 'not set')}"
            )
        devices = [torch.device("cuda", first + i) for i in range(devices_per_rank)]
    return Identity(rank, world_size, local_rank, socket.gethostname(), devices)


def take(devices: Sequence[torch.device]) -> None:
    """Use a rank's devices for the first time: the first of them becomes the current one."""
    if devices[0].type == "cuda":
        torch.cuda.set_device(devices[0])
        torch.cuda.init()


def gpu_uuid(device: torch.device) -> Optional[str]:
    """Return a GPU's UUID, or None where this torch cannot tell (before 2.4) and for a CPU."""
    if device.type != "cuda":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if uuid is None else str(uuid)


def device_name(device: torch.device) -> str:
    """Return the product name of a GPU, or ``cpu``."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def seconds_since_process_start() -> Optional[float]:
    """Return how long this process has existed, from Linux's /proc; None elsewhere."""
    try:
        with open("/proc/self/stat", encoding="ascii") as stat:
            # The second field, the program's name, may hold spaces: count from the last bracket.
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def seconds_since_launch(environ: Mapping[str, str], limit: float) -> float:
    """Return how much of a launch's time limit has passed: since its driver started it, else since this process began.

    torchrun imports torch before it starts a rank, which on a busy machine takes as long as the rank's own imports.
    """
    try:
        passed = time.monotonic() - float(environ[contract.STARTED])
    except (KeyError, ValueError):
        passed = -1.0
    # On another node, or in a container with a clock of its own, the number means nothing.
    if 0.0 <= passed <= limit:
        return passed
    return seconds_since_process_start() or 0.0
