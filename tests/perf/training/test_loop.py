"""The training loop does what a tutorial's loop does, and tells the meter of every step."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from perf.training.loop import drain, train
from perf.training.meter import Meter
from tests.perf.training.helpers import TinyWorkload, separable

CPU = torch.device("cpu")


def loader(samples: int = 44) -> DataLoader:
    return DataLoader(separable(samples, 1), batch_size=8)


def setup(device, **changes):
    """Return a new tiny model, its optimizer and a meter, from one seed."""
    torch.manual_seed(3)
    workload = TinyWorkload()
    model = workload.build_model()
    options = {
        "warmup_steps": 2,
        "rewarm_steps": 0,
        "timed_steps": 100,
        "min_seconds": 0.0,
        "stop_when_timed": True,
    }
    return model, workload.make_optimizer(model), Meter(device, **{**options, **changes})


def test_an_epoch_trains_as_the_same_lines_by_hand_do(device):
    """Parameters and losses are those of the bare loop, bit for bit."""
    model, optimizer, meter = setup(device)
    by_hand, its_optimizer, _ = setup(device)
    expected = []
    by_hand.train()
    for data, target in loader():
        its_optimizer.zero_grad()
        loss = TinyWorkload.loss_function(by_hand(data), target)
        loss.backward()
        its_optimizer.step()
        expected.append(loss.item())

    assert train(model, CPU, loader(), TinyWorkload.loss_function, optimizer, meter) is True
    assert expected == [loss.item() for loss in meter.losses]
    for name, parameter in by_hand.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name))


def test_partial_batches_are_counted_as_they_are(device):
    """44 samples in batches of 8 are 6 steps of which the last has 4."""
    model, optimizer, meter = setup(device)
    meter.start_epoch()
    train(model, CPU, loader(), TinyWorkload.loss_function, optimizer, meter)

    assert (6, 44) == meter.end_epoch()[1:3]


def test_training_ends_with_the_window(device):
    """When the meter has its steps the epoch ends, and is not called whole."""
    model, optimizer, meter = setup(device, timed_steps=2)

    assert train(model, CPU, loader(), TinyWorkload.loss_function, optimizer, meter) is False
    assert 4 == meter.total_steps


@pytest.mark.parametrize("mode", [True, False])
def test_the_model_is_in_training(device, mode):
    """Validation between epochs may have left it in another mode."""
    model, optimizer, meter = setup(device)
    model.train(mode)
    train(model, CPU, loader(), TinyWorkload.loss_function, optimizer, meter)

    assert model.training


def test_a_drained_loader_is_counted_and_trains_nothing(device):
    """Mode ``io`` takes every batch, has no losses, and ends with the window too."""
    _, _, meter = setup(device)
    meter.start_epoch()

    assert drain(loader(), meter) is True
    assert (6, 44) == meter.end_epoch()[1:3]
    assert [] == meter.losses
    assert drain(loader(), setup(device, timed_steps=1)[2]) is False
