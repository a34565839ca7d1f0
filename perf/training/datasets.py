"""Data sets around data sets: the first samples of one, or mere numbers in the place of its samples."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Optional, cast

import torch
from torch.utils.data import Dataset

TOLERANCE = 1e-5
"""Largest error of a delivered value, absolute and relative. float32 arithmetic on normalized pixels (up to 3) in
another order errs by some 3e-7; a forgotten mean of 0.13 or a half-precision step (1e-3) is far above."""


class Numbers(Dataset[Any]):
    """As many items as a data set has, each its own number, for counting which samples a loader delivers.

    Sampler, batches and workers are the same with it; only the images are not read, which would make counting a
    published epoch of 60,000 take 22 s instead of 1 s on a slow core. Loaders of whole batches count with it too.
    """

    def __init__(self, dataset: Dataset[Any]) -> None:
        self._size = len(cast(Sized, dataset))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> int:
        _check_index(index, self._size)
        return index

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return all numbers: int64, shape ``(samples,)``."""
        return (torch.arange(self._size),)

    def batch(self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor) -> torch.Tensor:
        """Return the numbers `indices`, on the device where `tensors` lie."""
        for index in indices.tolist():
            _check_index(index, self._size)
        return tensors[0][indices.to(tensors[0].device)]


class Wrapped(Dataset[Any]):
    """A data set around another one, that passes on what loaders ask of `models.interface.Samples`."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @property
    def tolerance(self) -> float:
        """Largest error of a delivered value, as the set says."""
        return float(getattr(self.dataset, "tolerance", TOLERANCE))

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one sample, made by the set's plain code."""
        return cast("tuple[torch.Tensor, torch.Tensor]", self.dataset.reference(index))

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Draw anew what is random in the set, if it has such."""
        start_epoch(self.dataset, epoch, seed)


class Shortened(Wrapped):
    """The first samples of a data set. Each keeps its index, so the set's own methods serve for them."""

    def __init__(self, dataset: Any, samples: int) -> None:
        super().__init__(dataset)
        self._size = samples

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:
        _check_index(index, self._size)
        return self.dataset[index]

    @property
    def transform(self) -> Any:
        """What the set does with an image; None where it says nothing."""
        return getattr(self.dataset, "transform", None)

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the raw data of the whole set: a sample may be cut from a field that all share."""
        return cast("tuple[torch.Tensor, ...]", self.dataset.tensors())

    def batch(self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor) -> Any:
        """Return the samples `indices` as one batch, made by the set."""
        for index in indices.tolist():
            _check_index(index, self._size)
        return self.dataset.batch(tensors, indices)

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one sample, made by the set's plain code."""
        _check_index(index, self._size)
        return super().reference(index)


def shorten(dataset: Dataset[Any], samples: Optional[int]) -> Dataset[Any]:
    """Return the first `samples` items of a data set; the set itself for None.

    Raises
    ------
    ValueError
        If the data set has fewer.
    """
    if samples is None:
        return dataset
    size = len(cast(Sized, dataset))
    if not 0 < samples <= size:
        raise ValueError(f"{samples} samples asked for, the data set has {size}")
    return Shortened(dataset, samples)


def unwrapped(dataset: Any) -> Any:
    """Return the data set itself, whatever is around it."""
    while isinstance(dataset, Wrapped):
        dataset = dataset.dataset
    return dataset


def start_epoch(dataset: Any, epoch: int, seed: int) -> None:
    """Draw anew what is random in a set (`models.interface.Samples.start_epoch`), if it has such."""
    if hasattr(dataset, "start_epoch"):
        dataset.start_epoch(epoch, seed)


def _check_index(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise IndexError(f"sample {index} asked for, the data set has {size}")
