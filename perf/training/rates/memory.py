"""Copies: within a device's memory, between host and device, and from one GPU to another."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from perf.contract import Rate
from perf.training.rates.timing import Timer, rate

UNIT = "B/s"


def device_copy(device: torch.device, timer: Timer, size: int) -> tuple[str, Rate]:
    """Return the rate of a copy of `size` bytes within the memory of a device, in bytes read plus bytes written.

    On the CPU the device's memory is the host's, and torch copies with as many threads as it has.
    """
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    target.copy_(source)  # the operating system gives memory when it is first written
    seconds = timer.repeat(lambda: target.copy_(source))
    return "memory_copy", rate(2.0 * _bytes(source), UNIT, seconds, bytes=_bytes(source))


def transfers(device: torch.device, timer: Timer, size: int) -> Iterator[tuple[str, Rate]]:
    """Yield the rates of copies of `size` bytes between the host and a GPU, from pinned and from pageable memory.

    Copies from pinned memory are queued (``non_blocking``), as a loader with ``pin_memory`` allows; those from pageable
    memory pass through a buffer of the driver's and hold up the host.
    """
    on_device = torch.ones(size // 4, dtype=torch.float32, device=device)
    for kind in ("pinned", "pageable"):
        pinned = kind == "pinned"
        on_host = torch.ones(size // 4, dtype=torch.float32, pin_memory=pinned)
        about = {"bytes": _bytes(on_host), "pinned": on_host.is_pinned()}

        def to_device(host: torch.Tensor = on_host, queued: bool = pinned) -> None:
            on_device.copy_(host, non_blocking=queued)

        def to_host(host: torch.Tensor = on_host, queued: bool = pinned) -> None:
            host.copy_(on_device, non_blocking=queued)

        yield f"host_to_device_{kind}", rate(_bytes(on_host), UNIT, timer.repeat(to_device), **about)
        yield f"device_to_host_{kind}", rate(_bytes(on_host), UNIT, timer.repeat(to_host), **about)


def peer_copy(source: torch.device, target: torch.device, timer: Timer, size: int) -> tuple[str, Rate]:
    """Return the rate of a copy of `size` bytes from one device to another.

    `timer` must synchronize both. Without peer access the copy goes through the host's memory, which `about` tells.
    """
    here = torch.ones(size // 4, dtype=torch.float32, device=source)
    there = torch.empty(size // 4, dtype=torch.float32, device=target)
    seconds = timer.repeat(lambda: there.copy_(here, non_blocking=True))
    both_gpus = source.type == target.type == "cuda"
    return "peer_copy", rate(
        _bytes(here),
        UNIT,
        seconds,
        bytes=_bytes(here),
        source=str(source),
        target=str(target),
        peer_access=torch.cuda.can_device_access_peer(source, target) if both_gpus else None,
    )


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
