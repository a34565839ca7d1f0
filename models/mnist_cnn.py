"""A small convolutional network on MNIST.

The network, loss, optimizer and schedule of PyTorch's MNIST example, as the workshops of USC CARC, Princeton Research
Computing and NYU use it to teach profiling: almost all of its time goes into loading data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import LRScheduler

from models import choices, mnist_data
from models.classification import validate_classes

PARAMETERS = 1_199_882
BATCH_SIZE = 64
VALIDATION_BATCH_SIZE = 1000
TRAIN_SAMPLES = 60_000
VALIDATION_SAMPLES = 10_000
SAMPLE_SHAPE = (1, 28, 28)
TARGET_SHAPE = ()
OPTIMIZERS = ("adadelta", "adam", "rmsprop")
SCHEDULES = ("step", "exponential", "cosine")


class Net(nn.Module):
    """Two convolutions and two linear layers; from ``(batch, 1, 28, 28)`` to log-probabilities ``(batch, 10)``."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(x)
        x = F.relu(x)
        x = self.conv2(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.fc1(x)
        x = F.relu(x)
        x = self.dropout2(x)
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


def build_model() -> nn.Module:
    return Net()


loss_function = F.nll_loss


def make_optimizer(model: nn.Module, name: str = "", **flags: Any) -> optim.Optimizer:
    # The guide of source 004 asks to try Adam and RMSprop and gives no rates; these are torch's own defaults.
    return choices.choose(
        "optimizer",
        name,
        {
            "adadelta": lambda: optim.Adadelta(model.parameters(), lr=1.0, **flags),
            "adam": lambda: optim.Adam(model.parameters(), lr=1e-3, **flags),
            "rmsprop": lambda: optim.RMSprop(model.parameters(), lr=1e-3, **flags),
        },
    )


def make_scheduler(optimizer: optim.Optimizer, name: str = "", epochs: int = 0) -> LRScheduler:
    return choices.schedule(optimizer, name or "step", epochs, gamma=0.7)


def train_set(data_root: str | None, cache_dir: str) -> tuple[mnist_data.Mnist, dict[str, object]]:
    source = mnist_data.find(data_root, cache_dir)
    dataset = mnist_data.load(source, train=True, cache_dir=cache_dir)
    return dataset, mnist_data.provenance(source, len(dataset))


def validation_set(data_root: str | None, cache_dir: str) -> tuple[mnist_data.Mnist, dict[str, object]]:
    source = mnist_data.find(data_root, cache_dir)
    dataset = mnist_data.load(source, train=False, cache_dir=cache_dir)
    return dataset, mnist_data.provenance(source, len(dataset))


def validate(
    model: nn.Module, device: torch.device, loader: Iterable[tuple[torch.Tensor, torch.Tensor]]
) -> tuple[float, float]:
    return validate_classes(model, device, loader, F.nll_loss)
