"""How the cores of a node are divided among a variant's threads and loader workers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from perf.variants import LOADERS_WITH_WORKERS, Variant

MOST_DEFAULT_WORKERS = 8
"""The tutorials stop at 8 loader workers a GPU; more is asked for explicitly."""


@dataclass(frozen=True)
class Share:
    """What a variant is given of a node: `workers` a device, `threads` a rank, `cores` a rank."""

    workers: int
    threads: int
    cores: int
    oversubscribed: bool
    held: bool = False
    """Whether there are fewer workers than the cores would feed, since the epochs are too short for more."""


def share_of_cores(
    variant: Variant,
    cores: int,
    *,
    devices: int | None = None,
    one_thread: bool = False,
    most_workers: int | None = None,
) -> Share:
    """Divide the cores allowed on a node among a variant's threads and loader workers.

    Every device gets an equal part, or what the variant is tied to; half of it, at most `most_workers`, are loader
    workers and the rest threads, so that together they never exceed the cores. Where the variant names a number, that
    number is taken, and the share is `oversubscribed` if the sum exceeds the cores.

    Parameters
    ----------
    variant
        The variant.
    cores
        Cores allowed to this process on the node.
    devices
        Devices to divide by: a group's largest member, so that its members are fed alike. Default: the variant's own.
    one_thread
        Whether a rank has one thread whatever its part is (profile ``smoke``).
    most_workers
        Loader workers that a device has at most, where the variant names no number. Default: `MOST_DEFAULT_WORKERS`.
    """
    part = variant.cores or max(1, cores // max(devices or 0, variant.devices_per_node))
    most = MOST_DEFAULT_WORKERS if most_workers is None else most_workers
    if variant.loader not in LOADERS_WITH_WORKERS:
        workers = 0
    else:
        workers = min(most, part // 2) if variant.workers is None else variant.workers
    held = workers == most < min(MOST_DEFAULT_WORKERS, part // 2) and variant.workers is None
    devices_per_rank = variant.devices_per_node // variant.ranks_per_node
    # On a GPU the host's threads have nothing to do, and the DataLoader's pinning thread sets torch's number to 1.
    threads = 1 if one_thread or variant.device == "cuda" else max(1, part - workers)
    if variant.threads is not None:
        threads = variant.threads
    used = threads * variant.ranks_per_node + workers * variant.devices_per_node
    there = variant.cores * variant.devices_per_node if variant.cores else cores
    return Share(workers, threads, part * devices_per_rank, used > there, held)
