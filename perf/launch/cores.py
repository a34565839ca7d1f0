"""Cores beside each other's launches: which part of the allowed ones goes with which GPU, and binding to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path


def parts(cores: Sequence[int], gpus: int, usable: int | None = None) -> list[list[int]]:
    """Divide cores among GPUs: the same number for each, in order; what is left over goes to none. Pure.

    Parameters
    ----------
    cores
        Numbers of the allowed cores, neighbours beside each other (`in_order`).
    gpus
        GPUs that they are divided among, at least 1.
    usable
        Cores that may be busy at the same time, where a quota allows fewer than there are.

    Returns
    -------
    list of list of int
        One part a GPU; with fewer cores than GPUs, parts of one core that some GPUs share.
    """
    size = min(len(cores), len(cores) if usable is None else usable) // gpus
    if size == 0:
        return [[cores[place % len(cores)]] for place in range(gpus)]
    # Apart as far as they can be, so that parts keep to their own socket where a quota leaves cores idle.
    stride = len(cores) // gpus
    return [list(cores[place * stride : place * stride + size]) for place in range(gpus)]


def in_order(cores: Collection[int], root: Path = Path("/")) -> list[int]:
    """Return cores by socket, then by physical core, so that no two parts share one. Reads /sys.

    Two hardware threads of a core have numbers far apart: 0 and 64 of 64 cores.
    """
    return sorted(cores, key=lambda core: (*_place(core, root), core))


@contextlib.contextmanager
def bound(cores: Collection[int] | None) -> Iterator[None]:
    """Bind this thread, and all that it starts meanwhile, to some cores; None leaves it as it is."""
    before = os.sched_getaffinity(0)
    if cores is not None:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        if cores is not None:
            os.sched_setaffinity(0, before)


def _place(core: int, root: Path) -> tuple[int, int]:
    """Return a core's socket and physical core; zeros where the system does not say."""
    folder = root / f"sys/devices/system/cpu/cpu{core}/topology"
    return _number(folder / "physical_package_id"), _number(folder / "core_id")


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
