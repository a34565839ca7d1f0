"""Faults between ranks, and of the machine that they run on. Python 3.9, no torch import."""

from __future__ import annotations

import errno
import functools
import os
import time
from typing import Any

from perf.faults.inject.planting import (
    HANG_STEP,
    LAST_RANK,
    SLOW_SECONDS,
    STEP,
    After,
    Plant,
    Rank,
    at_step,
    each_step,
    replaced_file,
    work,
)

# Communication.


def slow_rank(after: After, rank: Rank) -> None:
    """One rank comes late to every step."""
    each_step(after, lambda: work(SLOW_SECONDS if rank() == LAST_RANK else 0.0))


def rank_order(after: After, rank: Rank) -> None:
    """Ranks in another order than the devices that they take."""
    if os.environ.get("WORLD_SIZE") == "2":
        os.environ["LOCAL_RANK"] = str(1 - int(os.environ["LOCAL_RANK"]))


def bucket_a_parameter(after: After, rank: Rank) -> None:
    """DDP with a bucket for each parameter: as many messages as parameters."""
    _buckets(after, 1)


def no_overlap(after: After, rank: Rank) -> None:
    """DDP with one bucket for everything: nothing is sent before the backward pass is over."""
    _buckets(after, 2**40)


def _buckets(after: After, size: int) -> None:
    def patch(module: Any) -> None:
        plain = module.DistributedDataParallel.__init__

        @functools.wraps(plain)
        def init(self: Any, *arguments: Any, **options: Any) -> None:
            # DDP takes MiB; an explicit size holds for the first bucket too.
            options["bucket_cap_mb"] = size / 2**20
            plain(self, *arguments, **options)

        module.DistributedDataParallel.__init__ = init

    after("torch.nn.parallel.distributed", patch)


# Infrastructure.


def rank_hangs(after: After, rank: Rank) -> None:
    """One rank hangs in native code, which holds the interpreter's lock."""
    import ctypes

    at_step(after, HANG_STEP, lambda: ctypes.PyDLL(None).sleep(3600 if rank() == LAST_RANK else 0))


def rank_killed(after: After, rank: Rank) -> None:
    """One rank is killed, as the kernel does it when memory is short."""
    at_step(after, STEP, lambda: os.kill(os.getpid(), 9 if rank() == LAST_RANK else 0))


def rank_out_of_memory(after: After, rank: Rank) -> None:
    """One rank gets no more memory."""

    def act() -> None:
        bytearray(2**62 if rank() == LAST_RANK else 1)

    at_step(after, STEP, act)


def disk_full(after: After, rank: Rank) -> None:
    """No space is left when a rank writes its record."""

    def refuse(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    replaced_file(refuse, f"rank-{LAST_RANK}.json")


def record_cut(after: After, rank: Rank) -> None:
    """A record is cut short on its way to the disk."""
    replaced_file(lambda source, target: os.truncate(source, 200), f"rank-{LAST_RANK}.json")


def clock_stepped(after: After, rank: Rank) -> None:
    """The system's clock is set while one rank measures."""
    plain, shift = time.time, [0.0]
    time.time = lambda: plain() + shift[0]

    def act() -> None:
        shift[0] = -3600.0 if rank() == LAST_RANK else 0.0

    at_step(after, STEP, act)


def other_torch(after: After, rank: Rank) -> None:
    """The worker gets another torch than the one that the stack was asked about."""

    def patch(module: Any) -> None:
        module.__version__ = "2.0.0+elsewhere"

    after("torch", patch)


PLANTS: dict[str, Plant] = {
    "slow-rank": slow_rank,
    "rank-order": rank_order,
    "bucket-a-parameter": bucket_a_parameter,
    "no-overlap": no_overlap,
    "rank-hangs": rank_hangs,
    "rank-killed": rank_killed,
    "rank-out-of-memory": rank_out_of_memory,
    "disk-full": disk_full,
    "record-cut": record_cut,
    "clock-stepped": clock_stepped,
    "torch-not-the-stacks": other_torch,
}
