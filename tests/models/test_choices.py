"""Optimizers and schedules by name."""

from __future__ import annotations

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, StepLR

from models import mnist_cnn
from models.choices import choose, schedule


def rates(name: str, epochs: int) -> list[float]:
    """Return the rate of each epoch."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = schedule(optimizer, name, epochs, gamma=0.5)
    found = []
    for _ in range(epochs):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("step", [1.0, 0.5, 0.25, 0.125]),
        ("exponential", [1.0, 0.5, 0.25, 0.125]),
        ("cosine", [1.0, 0.853553, 0.5, 0.146447]),
        ("constant", [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_a_schedule_sets_the_rate_of_each_epoch(name, expected):
    """Stepped once an epoch, each gives its known rates; cosine ends at 0 after the last epoch."""
    assert expected == pytest.approx(rates(name, 4), abs=1e-6)


def test_an_unknown_name_is_refused_with_the_known_ones():
    """A misspelt name is never another choice."""
    with pytest.raises(
        ValueError, match="schedule 'linear' is not one of step, exponential, cosine, constant"
    ):
        rates("linear", 1)


def test_no_name_is_the_first():
    """The workload's own choice stands first."""
    assert 1 == choose("thing", "", {"a": lambda: 1, "b": lambda: 2})


@pytest.mark.parametrize(
    ("name", "kind"),
    [("", torch.optim.Adadelta), ("adam", torch.optim.Adam), ("rmsprop", torch.optim.RMSprop)],
)
def test_mnist_offers_the_optimizers_of_the_guide(name, kind):
    """Source 004's guide asks to try Adadelta, Adam and RMSprop."""
    assert kind is type(mnist_cnn.make_optimizer(mnist_cnn.build_model(), name))


@pytest.mark.parametrize(
    ("name", "kind"), [("", StepLR), ("exponential", ExponentialLR), ("cosine", CosineAnnealingLR)]
)
def test_mnist_offers_the_schedules_of_the_guide(name, kind):
    """Source 004's guide asks to try StepLR, ExponentialLR and CosineAnnealingLR."""
    optimizer = mnist_cnn.make_optimizer(mnist_cnn.build_model())

    assert kind is type(mnist_cnn.make_scheduler(optimizer, name, epochs=5))
