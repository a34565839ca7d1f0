"""One rank's part of a machine's card: which rates are measured, at which sizes, and the record that holds them.

One rank alone measures its device, its host and its storage; ranks together measure what lies between them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

import torch
import torch.distributed as dist

from perf.contract import LaunchSpec, RankRecord, Rate
from perf.training import strategies, usage
from perf.training.clocks import CudaClock, HostClock
from perf.training.identity import Identity, device_name, gpu_uuid
from perf.training.rates.collective import all_reduces
from perf.training.rates.files import checkpoint_write, file_reads
from perf.training.rates.host import kernel_launches, python_loop
from perf.training.rates.matrix import matrix_products
from perf.training.rates.memory import device_copy, peer_copy, transfers
from perf.training.rates.timing import Timer
from perf.training.stackinfo import stack_info
from perf.training.state import State


@dataclass(frozen=True)
class Scale:
    """Sizes of what is timed; bytes unless they say otherwise.

    A rate belongs to its size, so the sizes are the same on every machine of a kind and stand in the record.
    """

    side: int
    """Rows and columns of the matrices."""
    copy: int
    transfer: int
    read: int
    least_read: int
    """A folder that holds less is not read: its files lie in too few pages to tell a rate."""
    checkpoint: int


MIB = 2**20

RESNET50_BYTES = 4 * 23_712_932
"""A checkpoint of ResNet-50's parameters in float32."""

SCALES = {
    # A product of 8192^3 is 1.1 TFLOP and keeps every unit of a GPU of these years busy for a millisecond and more;
    # 1 GiB is far above its caches.
    "cuda": Scale(8192, 1024 * MIB, 256 * MIB, 64 * MIB, 16 * MIB, RESNET50_BYTES),
    # 2 GFLOP take two slow cores 20 ms; twice 256 MiB lie beyond the caches of most CPUs.
    "cpu": Scale(1024, 256 * MIB, 256 * MIB, 64 * MIB, 16 * MIB, RESNET50_BYTES),
}


def timer_on(devices: list[torch.device], box: float, *, together: bool = False) -> Timer:
    """Return a timer that waits for these devices; with `together`, all ranks repeat equally often."""
    clock = CudaClock(devices) if devices[0].type == "cuda" else HostClock()
    if not together:
        return Timer(clock.synchronize, box)
    return Timer(clock.synchronize, box, lambda number: strategies.largest(number, devices[0]))


def rates_of_one(spec: LaunchSpec, device: torch.device, scale: Scale) -> Iterator[tuple[str, Rate]]:
    """Yield the rates that one rank measures by itself."""
    timer = timer_on([device], spec.min_seconds)
    yield from matrix_products(device, timer, scale.side)
    yield device_copy(device, timer, scale.copy)
    if device.type == "cuda":
        yield from transfers(device, timer, scale.transfer)
    yield python_loop(timer)
    yield from kernel_launches(device, timer)
    yield from file_reads((spec.data_root, spec.cache_dir), timer, scale.read, scale.least_read)
    yield checkpoint_write(spec.out_dir, device, timer, scale.checkpoint)


def rates_between(spec: LaunchSpec, identity: Identity, scale: Scale) -> Iterator[tuple[str, Rate]]:
    """Yield the rates that the ranks of a launch measure together; a copy between two GPUs on the first rank only."""
    yield from all_reduces(identity.device, timer_on([identity.device], spec.min_seconds, together=True))
    if identity.is_cuda and spec.ranks_per_node > 1:
        strategies.wait_for_all()
        if identity.rank == 0:
            here = identity.device
            there = torch.device("cuda", here.index + 1)
            yield peer_copy(here, there, timer_on([here, there], spec.min_seconds), scale.transfer)
        strategies.wait_for_all()


def measure_card(
    spec: LaunchSpec,
    identity: Identity,
    state: State,
    startup: dict[str, float],
    scale: Optional[Scale] = None,
) -> RankRecord:
    """Measure this rank's rates and return its record. No step is trained, so the record holds none.

    Parameters
    ----------
    spec
        Its `min_seconds` is the time of one rate.
    identity, state, startup
        As in a training launch.
    scale
        Sizes of what is timed; those of the kind of device if None.
    """
    started_at = time.time()
    scale = scale or SCALES[identity.device.type]
    state.enter("rates")
    before = time.perf_counter()
    several = spec.strategy == "ddp"
    rates = dict(
        rates_between(spec, identity, scale) if several else rates_of_one(spec, identity.device, scale)
    )
    startup["rates"] = time.perf_counter() - before
    return RankRecord(
        run=spec.run,
        launch=spec.launch,
        variant=spec.variant,
        rank=identity.rank,
        world_size=identity.world_size,
        local_rank=identity.local_rank,
        host=identity.host,
        pid=os.getpid(),
        started_at=started_at,
        device_names=[device_name(device) for device in identity.devices],
        gpu_uuids=[gpu_uuid(device) for device in identity.devices] if identity.is_cuda else [],
        stack=stack_info(),
        data={},
        warmup_steps=0,
        step_seconds=[],
        window_seconds=0.0,
        window_samples=0,
        wait_seconds=0.0,
        halves=[],
        total_steps=0,
        loss_first=None,
        loss_last=None,
        losses_finite=None,
        first_step_seconds=None,
        epochs=[],
        parameters=0,
        parameters_digest=None,
        peak_memory_bytes=_peaks(identity),
        reserved_memory_bytes={},
        allocator_retries={},
        effective={
            "world_size": dist.get_world_size() if dist.is_initialized() else 1,
            "backend": dist.get_backend() if dist.is_initialized() else "none",
            "threads": torch.get_num_threads(),
        },
        threads=usage.threads(),
        startup_seconds=startup,
        telemetry=usage.usage(),
        rates=rates,
    )


def _peaks(identity: Identity) -> dict[str, int]:
    if not identity.is_cuda:
        return {}
    return {str(device): torch.cuda.max_memory_allocated(device) for device in identity.devices}
