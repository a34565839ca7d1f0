"""Raw data that lie on the device, and batches made there: what training costs where loading costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import BatchSampler

from perf.training.loaders import LoaderPlan, make_sampler, require_batches
from perf.training.settings import NotInForce, Unavailable


class ResidentLoader:
    """A data set on a device, in the order of the native loader.

    The raw tensors are moved once, when the loader is made. Workers of the plan mean nothing: nothing is left for them
    to do. On the CPU nothing moves, and a data set that maps a file goes on reading it.

    Parameters
    ----------
    dataset : models.interface.Samples
        What to load.
    plan : LoaderPlan
        The rank's share.
    device : torch.device
        Where the data shall lie.

    Raises
    ------
    NotInForce
        The data set makes no whole batches, or the plan asks for persistent workers or prefetched batches.
    Unavailable
        The device has no room for the data.
    """

    loader_name = "resident"
    num_workers = 0
    prefetch_factor = None
    pin_memory = False
    persistent_workers = False

    def __init__(self, dataset: Any, plan: LoaderPlan, device: torch.device) -> None:
        require_batches(self.loader_name, dataset)
        if plan.persistent or plan.prefetch is not None:
            raise NotInForce(
                "loader resident has no workers, so neither persistent ones nor prefetched batches can be in force"
            )
        self.dataset = dataset
        self.batch_size = plan.batch_size
        self.sampler = make_sampler(dataset, plan)
        self._order = BatchSampler(self.sampler, plan.batch_size, drop_last=False)
        raw = dataset.tensors()
        try:
            self._tensors = tuple(tensor.to(device) for tensor in raw)
        except torch.cuda.OutOfMemoryError as error:
            raise Unavailable(
                f"loader resident: the data set has {_bytes(raw)} bytes and {device} has no room for them; take a "
                "smaller set or another loader"
            ) from error

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Any]:
        """Yield an epoch's batches, made on the device one by one."""
        for indices in self._order:
            yield self.fetch(indices)

    def fetch(self, indices: list[int]) -> Any:
        """Return the samples `indices` as one batch on the device."""
        return self.dataset.batch(self._tensors, torch.tensor(indices, dtype=torch.int64))

    @property
    def facts(self) -> dict[str, Any]:
        """Where the data lie and how many bytes they have, from the tensors."""
        return {
            "device": ", ".join(sorted({str(tensor.device) for tensor in self._tensors})),
            "bytes": _bytes(self._tensors),
        }


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
