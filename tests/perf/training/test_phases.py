"""Where a step's time goes, phase by phase."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from perf.training.loop import train, train_with
from perf.training.meter import Meter
from perf.training.phases import PHASES, LastGradient, PhaseTimer, train_in_phases, train_with_in_phases
from perf.training.steps import EagerStep
from tests.perf.training.helpers import FakeDevice, TinyWorkload, separable

CPU = torch.device("cpu")


def meter_on(device: FakeDevice, timed_steps: int = 100) -> Meter:
    return Meter(
        device, warmup_steps=2, rewarm_steps=0, timed_steps=timed_steps, min_seconds=0.0, stop_when_timed=True
    )


class Slow:
    """A loader, model, loss and optimizer of which each takes its own time on a device with a queue."""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device
        self.parameter = torch.ones((), requires_grad=True)

    def train(self) -> None:
        """Nothing to switch."""

    def batches(self, count: int):
        for _ in range(count):
            self.device.host(0.5)
            yield self, [0] * 4

    def to(self, _: torch.device):
        self.device.queue(0.25)
        return self

    def __call__(self, _: object):
        self.device.queue(2.0)
        return self

    def loss(self, *_: object):
        return self

    def backward(self) -> None:
        self.device.queue(3.0)

    @property
    def data(self) -> torch.Tensor:
        return self.parameter.data

    def zero_grad(self) -> None:
        self.device.host(0.125)

    def step(self) -> None:
        self.device.queue(1.0)


class Target(list):
    def size(self, dimension: int) -> int:
        assert 0 == dimension
        return len(self)

    def to(self, _: torch.device) -> Target:
        return self


def test_each_phase_holds_the_work_that_it_queued(device):
    """A phase is synchronized at both ends, so that work counts where it was queued; every step has one entry."""
    slow = Slow(device)
    batches = ((data, Target(target)) for data, target in slow.batches(3))
    timer = PhaseTimer(device)
    whole = train_in_phases(slow, CPU, batches, slow.loss, slow, meter_on(device), timer)

    assert whole is True
    expected = {"data": 0.5, "copy": 0.25, "forward": 2.125, "backward": 3.0, "optimizer": 1.0}
    assert {*expected, "communication"} == set(PHASES)
    assert [] == timer.seconds["communication"], "one process talks to nobody"
    for phase, seconds in expected.items():
        assert pytest.approx([seconds] * 3) == timer.seconds[phase], phase


def test_what_lies_between_two_steps_is_in_no_phase(device):
    """The meter's own work at a step's end, such as opening a window, is not taken for a wait for data."""
    slow = Slow(device)
    meter = meter_on(device)
    meter.on_window = lambda opens: device.host(50.0)
    timer = PhaseTimer(device)
    train_in_phases(slow, CPU, ((d, Target(t)) for d, t in slow.batches(5)), slow.loss, slow, meter, timer)

    assert pytest.approx([0.5] * 5) == timer.seconds["data"]


def test_training_in_phases_trains_the_same(device):
    """Parameters and losses are those of the ordinary loop, and so is the end with the window."""
    results = []
    for phases in (False, True):
        torch.manual_seed(3)
        model = TinyWorkload().build_model()
        optimizer = TinyWorkload().make_optimizer(model)
        loader, meter = DataLoader(separable(44, 1), batch_size=8), meter_on(device, timed_steps=3)
        arguments = (model, CPU, loader, TinyWorkload.loss_function, optimizer, meter)
        whole = train_in_phases(*arguments, PhaseTimer(device)) if phases else train(*arguments)
        results.append(
            (
                whole,
                [loss.item() for loss in meter.losses],
                torch.cat([p.flatten() for p in model.parameters()]),
            )
        )

    assert results[0][0] is results[1][0] is False
    assert results[0][1] == results[1][1]
    assert 5 == len(results[0][1])
    assert torch.equal(results[0][2], results[1][2])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_of_its_own_in_phases_trains_the_same(device, precision):
    """Mixed precision too: parameters and losses are those of the step without, and each phase has its entry."""
    results, timer = [], PhaseTimer(device)
    for phases in (False, True):
        torch.manual_seed(3)
        model = TinyWorkload().build_model()
        optimizer = TinyWorkload().make_optimizer(model)
        step = EagerStep(model, CPU, TinyWorkload.loss_function, optimizer, precision=precision)
        loader, meter = DataLoader(separable(44, 1), batch_size=8), meter_on(device, timed_steps=3)
        whole = (
            train_with_in_phases(step.in_phases, model, loader, meter, timer)
            if phases
            else train_with(step, model, loader, meter)
        )
        results.append((whole, [loss.item() for loss in meter.losses]))

    assert results[0] == results[1]
    assert 5 == len(results[0][1])
    assert {**dict.fromkeys(PHASES, 5), "communication": 0} == {k: len(v) for k, v in timer.seconds.items()}


def test_what_ddp_waits_for_is_told_from_the_backward_pass(device, monkeypatch):
    """From the last gradient on a step waits for other ranks; the two parts are the whole."""
    model = torch.nn.Linear(2, 1)
    watch = LastGradient(model)
    times = iter([10.0, 11.0, 14.0])
    monkeypatch.setattr("perf.training.phases.time.perf_counter", lambda: next(times))
    model(torch.ones(1, 2)).sum().backward()

    assert 3.0 == watch.seconds_since()


@pytest.mark.parametrize(("waited", "backward", "communication"), [(0.5, 1.5, 0.5), (9.0, 0.0, 2.0)])
def test_a_backward_pass_is_split_and_never_negative(device, waited, backward, communication):
    """What is waited for is part of the pass, and not more than it."""

    class Fixed:
        def seconds_since(self):
            return waited

    timer = PhaseTimer(device)
    timer._gradients = Fixed()
    timer.start()
    device.host(2.0)
    timer.end_backward()

    assert [backward] == timer.seconds["backward"]
    assert [communication] == timer.seconds["communication"]
