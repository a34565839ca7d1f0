"""The same steps by two clocks."""

from __future__ import annotations

import pytest
import torch

from perf.training.both import Both, both_clocks
from perf.training.clocks import HostClock
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.ring import RingLoader
from tests.perf.training.helpers import FakeDevice, TinyWorkload, separable

CPU = torch.device("cpu")
TARGET = torch.zeros(4)


class Slowed(HostClock):
    """A host's clock that runs half as fast."""

    def durations(self, marks):
        return [seconds / 2 for seconds in super().durations(marks)]


def test_each_windows_steps_are_timed_by_both_clocks():
    """One step of a network, one point in time by either; a clock of half the speed shows as that."""
    plan = LoaderPlan(8, 0, 0, 1, distributed=False, pin_memory=False, seed=1)
    ring = RingLoader(native_loader(separable(80, 1), plan), CPU)
    model = TinyWorkload().build_model()
    optimizer = TinyWorkload().make_optimizer(model)
    trains = (model, TinyWorkload.loss_function, optimizer)
    found = both_clocks(ring, Slowed(), CPU, trains, windows=3, steps=50)

    assert 3 == len(found)
    assert all(host == pytest.approx(2 * events, rel=0.2) for host, events in found)


def test_a_device_that_falls_behind_is_slower_by_its_events():
    """The host's clock tells how fast work is queued, events how fast it is done; neither stops the training."""
    device = FakeDevice()
    both = Both(device, 4)
    both.begin()
    for _ in range(4):
        device.queue(1.0)
        assert both.step(TARGET, TARGET) is False

    host, events = both.medians()
    assert host < 0.5
    assert events == pytest.approx(1.0)
