"""What every workload offers to the worker. A workload is a module of this package, found by its name.

The modules are written to be read as plain PyTorch examples; this page says which names they share. mypy holds each
module against `Workload`, and `load_workload` refuses a module that lacks a name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any, Protocol, cast

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import Dataset


class Workload(Protocol):
    """A network, its data, loss, optimizer and schedule.

    The constants are facts that the driver's catalogue states too; the worker compares the two before it trains.
    """

    PARAMETERS: int
    """Trainable parameters of `build_model`'s network."""
    BATCH_SIZE: int
    """Samples a step on each device, in training."""
    VALIDATION_BATCH_SIZE: int
    """Samples a step in validation."""
    TRAIN_SAMPLES: int
    """Samples in one epoch of training."""
    VALIDATION_SAMPLES: int
    """Samples in one validation."""

    def build_model(self) -> nn.Module:
        """Return a new network on the CPU, in float32, initialized from torch's global generator."""

    def loss_function(self, output: torch.Tensor, target: torch.Tensor, /) -> torch.Tensor:
        """Return the mean loss of a batch: a scalar on the device of its arguments."""

    def make_optimizer(self, model: nn.Module, /) -> Optimizer:
        """Return the optimizer of the source, over the parameters of a model that is already on its device."""

    def make_scheduler(self, optimizer: Any, /) -> LRScheduler:
        """Return the learning-rate schedule, stepped once an epoch."""

    def train_set(self, data_root: str | None, cache_dir: str) -> tuple[Dataset[Any], dict[str, object]]:
        """Return the training samples and where they came from.

        The dictionary goes into the record as it is. It has at least ``kind``, ``description`` and ``fingerprint``
        (equal for equal data) and holds plain values. Raises `models.errors.DataError` if the data can't be used.
        """

    def validation_set(self, data_root: str | None, cache_dir: str) -> tuple[Dataset[Any], dict[str, object]]:
        """Return the validation samples and where they came from; as `train_set`."""

    def validate(
        self, model: nn.Module, device: torch.device, loader: Iterable[Any], /
    ) -> tuple[float, float]:
        """Return the mean loss and the accuracy (0 to 1) over all samples of a loader.

        The device is synchronized once, at the end. The model is left in the mode, training or not, that it was in.
        """


def load_workload(name: str) -> Workload:
    """Import a workload by its name.

    Parameters
    ----------
    name : str
        Name of a module in ``models/``: ``mnist_cnn``.

    Returns
    -------
    Workload
        The module.

    Raises
    ------
    ValueError
        There is no such module, or it is not a workload.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            f"workload {name!r} is no module name; expected small letters, digits and underscores."
        )
    try:
        module = importlib.import_module(f"models.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"models.{name}":
            raise  # the workload is there; something that it imports is not
        raise ValueError(f"there is no workload {name!r}: models/{name}.py doesn't exist.") from error
    missing = [member for member in _members() if not hasattr(module, member)]
    if missing:
        raise ValueError(
            f"models/{name}.py is no workload: it lacks {', '.join(missing)} (see models/interface.py)."
        )
    return cast(Workload, module)


def _members() -> tuple[str, ...]:
    """Return the names that a workload must have, constants first."""
    functions = (
        name for name, value in vars(Workload).items() if not name.startswith("_") and callable(value)
    )
    return (*Workload.__annotations__, *functions)
