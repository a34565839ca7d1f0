"""All-reduce of real gradients: as many bytes, in the same buckets, as DistributedDataParallel exchanges in a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from models.interface import load_workload
from perf.contract import Rate
from perf.training.rates.timing import Timer, rate
from perf.training.settings import NotInForce

WORKLOADS = ("mnist_cnn", "resnet50", "resnet152", "unet3d")
"""Whose gradients are reduced: 4.8, 95, 233 and 468 MB."""

FIRST_BUCKET = 2**20
"""Bytes at which DDP closes its first bucket, so that communication starts early (torch's default)."""

OTHER_BUCKETS = 25 * 2**20
"""Bytes at which DDP closes every other bucket (``bucket_cap_mb=25``, torch's default)."""


def buckets(sizes: Sequence[int], first: int = FIRST_BUCKET, cap: int = OTHER_BUCKETS) -> list[int]:
    """Return the bytes of DDP's buckets for gradients that become ready in this order.

    A gradient is never split: a bucket is closed by the one that fills it, so it may be larger than its limit.

    Parameters
    ----------
    sizes
        Bytes of each parameter's gradient; the last layer's come first.
    first, cap
        Bytes at which the first and every other bucket is closed.
    """
    found: list[int] = []
    filling, limit = 0, first
    for size in sizes:
        filling += size
        if filling >= limit:
            found.append(filling)
            filling, limit = 0, cap
    return found + ([filling] if filling else [])


def gradient_bytes(workload: str) -> list[int]:
    """Return the bytes of each gradient of a workload in float32, the last layer's first. Takes no memory."""
    with torch.device("meta"):
        model = load_workload(workload).build_model()
    return [4 * parameter.numel() for parameter in reversed(list(model.parameters()))]


def all_reduces(
    device: torch.device, timer: Timer, workloads: Sequence[str] = WORKLOADS
) -> Iterator[tuple[str, Rate]]:
    """Yield the bus bandwidth of an all-reduce of each workload's gradients over all ranks.

    Bus bandwidth is ``2 (n - 1) / n`` times the bytes over the time (nccl-tests, ``PERFORMANCE.md``): what passes each
    rank's link, comparable whatever the number of ranks. All buckets of a step are queued, then waited for, as DDP
    does after a backward pass.

    Raises
    ------
    NotInForce
        If the ranks' sums are wrong: then no reduction took place.
    """
    ranks = dist.get_world_size()
    for workload in workloads:
        sizes = buckets(gradient_bytes(workload))
        gradients = [torch.ones(size // 4, dtype=torch.float32, device=device) for size in sizes]

        def reduce(gradients: Sequence[torch.Tensor] = gradients) -> None:
            for handle in [dist.all_reduce(gradient, async_op=True) for gradient in gradients]:
                handle.wait()

        reduce()
        wrong = [g for g in gradients if float(g[0]) != ranks or float(g[-1]) != ranks]
        if wrong:
            raise NotInForce(
                f"an all-reduce of ones over {ranks} ranks gave {float(wrong[0][0]):g}, not {ranks}"
            )
        for gradient in gradients:
            gradient.zero_()  # ones would double with every repetition, up to infinity
        moved = 2.0 * (ranks - 1) / ranks * sum(sizes)
        seconds = timer.repeat(reduce)
        about = {"bytes": sum(sizes), "buckets": sizes, "ranks": ranks, "backend": dist.get_backend()}
        yield f"all_reduce_{workload}", rate(moved, "B/s", seconds, **about)
