"""A meter, a loader and a loop over a device and a host whose time passes only where a test says so."""

from __future__ import annotations

import torch

from perf.training.meter import Meter
from perf.training.watched import Watched
from tests.perf.training.helpers import FakeDevice

SAMPLES = 4
TARGET = torch.zeros(SAMPLES)


def make_meter(device: FakeDevice, **changes) -> Meter:
    """A meter of 3 steps of warm-up and 5 timed ones, or with what is changed of that."""
    options = {
        "warmup_steps": 3,
        "rewarm_steps": 0,
        "timed_steps": 5,
        "min_seconds": 0.0,
        "stop_when_timed": True,
    }
    return Meter(device, **{**options, **changes})


class Batches:
    """A loader with a length: a wait for each batch, the last of which may be partial, and for the workers' end."""

    def __init__(
        self, device: FakeDevice, count: int, wait: float = 0.01, end: float = 0.0, last: int = SAMPLES
    ) -> None:
        self.device, self.count, self.wait, self.end, self.last = device, count, wait, end, last

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        for number in range(self.count):
            self.device.host(self.wait)
            yield torch.full((SAMPLES if number < self.count - 1 else self.last,), number)
        self.device.host(self.end)


def run_epoch(device: FakeDevice, meter: Meter, batches, work: float = 1.0, loss=None) -> tuple:
    """One epoch of a loop that queues `work` seconds a step; as perf.training.loop.train does."""
    meter.start_epoch()
    for target in Watched(batches, meter):
        device.queue(work)
        device.host(0.001)
        if meter.step(loss, target):
            break
    return meter.end_epoch()
