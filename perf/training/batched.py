"""torch's DataLoader with batches made in one go: no call, image object and tensor for each sample."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch.utils.data import DataLoader

from perf.training.datasets import Wrapped
from perf.training.loaders import LoaderPlan, require_batches, torch_arguments


class Whole(Wrapped):
    """A data set that torch's loader asks for a list of samples at once.

    The hook is ``__getitems__``, which DataLoader prefers to ``__getitem__`` where a data set has it (torch 2.0 and
    later).
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        self._tensors: Optional[tuple[torch.Tensor, ...]] = None

    def __getstate__(self) -> dict[str, Any]:
        # A data set that maps a file would otherwise travel to each spawned worker as its contents.
        return {**self.__dict__, "_tensors": None}

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        """Return one sample, made as in the sources."""
        return self.dataset[index]

    def __getitems__(self, indices: list[int]) -> Any:
        """Return the samples `indices` as one batch, inputs and targets."""
        if self._tensors is None:
            # Once a process: a data set may have to make its labels a tensor first, which takes milliseconds.
            self._tensors = self.dataset.tensors()
        return self.dataset.batch(self._tensors, torch.tensor(indices, dtype=torch.int64))


class BatchedLoader(DataLoader[Any]):
    """The native loader (sampler, workers, pinned memory) over `Whole`.

    Raises
    ------
    NotInForce
        The data set makes no whole batches, or the plan can't be kept.
    """

    loader_name = "batched"

    def __init__(self, dataset: Any, plan: LoaderPlan) -> None:
        require_batches(self.loader_name, dataset)
        super().__init__(Whole(dataset), collate_fn=_as_it_is, **torch_arguments(dataset, plan))


def _as_it_is(batch: Any) -> Any:
    """Hand on what is a batch already. A function of the module, so that spawned workers find it."""
    return batch
