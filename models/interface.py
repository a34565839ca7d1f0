"""What every workload offers to the worker. A workload is found by its name: a module of this package, or a size in it.

The modules are written to be read as plain PyTorch examples; this page says which names they share. ``mnist_cnn`` is
the module ``models/mnist_cnn.py`` itself. A network that comes in sizes has a module with a dictionary ``SIZES``:
``resnet50`` is ``SIZES[""]`` of ``models/resnet50.py``, ``resnet50_tiny`` its ``SIZES["tiny"]``. Sizes change numbers,
never the code path. `load_workload` refuses what lacks a name.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Protocol, cast

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


class Samples(Protocol):
    """The data set of a workload: samples one by one as in the sources, and whole batches of the same samples.

    Which sample has which index depends on nothing but the set, `seed` and `epoch`, so that every loader delivers the
    same data, and a sample that was cut from a larger field is cut at the same place by all of them.
    """

    def __len__(self) -> int:
        """Return the number of samples in an epoch."""

    def __getitem__(self, index: int, /) -> tuple[Any, Any]:
        """Return one sample, made as the sources make it: input (a float32 tensor) and target."""

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the raw data on the CPU, as it lies in memory (uint8 images and labels, or float32 fields)."""

    def batch(
        self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor, /
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the samples `indices` (int64, on the CPU) as one batch, made on the device where `tensors` lie.

        `tensors` are those of `tensors()`, perhaps on another device. Shapes, types and values are those of samples
        taken one by one and stacked.
        """

    def reference(self, index: int, /) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one sample by other, plain and slow code, against which every loader is held before training."""

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Draw what is random in the samples anew: crops, rotations. Nothing where samples are always the same.

        `seed` differs between ranks, so that no two ranks train on the same crops. Loader workers that are started
        later see the new draw; those of a persistent loader too.
        """


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
    SAMPLE_SHAPE: tuple[int, ...]
    """Shape of one sample's input, as the loader hands it over (float32)."""
    TARGET_SHAPE: tuple[int, ...]
    """Shape of its target (float32); () is a label."""
    OPTIMIZERS: tuple[str, ...]
    """Optimizers that `make_optimizer` knows by name; the first is the source's own."""
    SCHEDULES: tuple[str, ...]
    """Schedules that `make_scheduler` knows by name; the first is the source's own."""

    def build_model(self) -> nn.Module:
        """Return a new network on the CPU, in float32, initialized from torch's global generator."""

    def loss_function(self, output: torch.Tensor, target: torch.Tensor, /) -> torch.Tensor:
        """Return the mean loss of a batch: a scalar on the device of its arguments."""

    def make_optimizer(self, model: nn.Module, /, name: str = "", **flags: Any) -> Optimizer:
        """Return an optimizer over the parameters of a model that is already on its device.

        `name` is one of `OPTIMIZERS`, "" the source's own. `flags` (``fused=True``, ``capturable=True``) are handed
        on to it; one that it does not know is its TypeError.
        """

    def make_scheduler(self, optimizer: Any, /, name: str = "", epochs: int = 0) -> LRScheduler:
        """Return a learning-rate schedule, stepped once an epoch: one of `SCHEDULES`, "" the source's own.

        `epochs` is how many the launch will train; schedules that end (cosine) need it.
        """

    def train_set(self, data_root: str | None, cache_dir: str) -> tuple[Samples, dict[str, object]]:
        """Return the training samples and where they came from.

        The dictionary goes into the record as it is. It has at least ``kind``, ``description`` and ``fingerprint``
        (equal for equal data) and holds plain values. Raises `models.errors.DataError` if the data can't be used.
        """

    def validation_set(self, data_root: str | None, cache_dir: str) -> tuple[Samples, dict[str, object]]:
        """Return the validation samples and where they came from; as `train_set`."""

    def validate(
        self, model: nn.Module, device: torch.device, loader: Iterable[Any], /
    ) -> tuple[float, float | None]:
        """Return the mean loss over all samples of a loader, and the accuracy (0 to 1), None where there is no such.

        The device is synchronized once, at the end. The model is left in the mode, training or not, that it was in.
        """


def load_workload(name: str) -> Workload:
    """Import a workload by its name.

    Parameters
    ----------
    name : str
        Name of a module in ``models/`` (``mnist_cnn``, ``resnet50``), or of one and a size in it (``resnet50_tiny``).

    Returns
    -------
    Workload
        The module, or the entry of its ``SIZES``.

    Raises
    ------
    ValueError
        There is no such module, or it is not a workload.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            f"workload {name!r} is no module name; expected small letters, digits and underscores."
        )
    module, size = _module(name), ""
    if module is None and "_" in name:
        stem, _, size = name.rpartition("_")
        module = _module(stem)
        if module is not None and not hasattr(module, "SIZES"):
            raise ValueError(f"there is no workload {name!r}: models/{stem}.py has no sizes.")
    if module is None:
        raise ValueError(f"there is no workload {name!r}: models/{name}.py doesn't exist.")
    found: Any = module
    where = f"models/{module.__name__.rpartition('.')[2]}.py"
    if hasattr(module, "SIZES"):
        if size not in module.SIZES:
            raise ValueError(
                f"there is no workload {name!r}: {where} has the sizes {', '.join(map(repr, module.SIZES))}."
            )
        found = module.SIZES[size]
    missing = [member for member in _members() if not hasattr(found, member)]
    if missing:
        raise ValueError(f"{where} is no workload: it lacks {', '.join(missing)} (see models/interface.py).")
    return cast(Workload, found)


def workload_names() -> list[str]:
    """Return the name of every workload in ``models/``, with every size. Imports each module of it."""
    found = []
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        loaded: Any = _module(module.name)
        if hasattr(loaded, "SIZES"):
            found += [f"{module.name}_{size}".rstrip("_") for size in loaded.SIZES]
        elif all(hasattr(loaded, member) for member in _members()):
            found.append(module.name)
    return found


def _module(name: str) -> ModuleType | None:
    """Import ``models/<name>.py``; None if there is none."""
    try:
        return importlib.import_module(f"models.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"models.{name}":
            raise  # the workload is there; something that it imports is not
        return None


def _members() -> tuple[str, ...]:
    """Return the names that a workload must have, constants first."""
    functions = (
        name for name, value in vars(Workload).items() if not name.startswith("_") and callable(value)
    )
    return (*Workload.__annotations__, *functions)
