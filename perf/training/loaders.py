"""How batches reach a rank: the loaders by name, the order they share, and a ring of batches that lie on the device."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Optional, Union, cast

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, RandomSampler

from perf.training.settings import NotInForce

NAMES = ("native", "batched", "resident", "dali")

RING_BATCHES = 8
"""Batches in the ring of mode ``synthetic``: more than one, so that no step meets the very batch it has just seen."""

RING_BYTES = 512 * 2**20
"""Of a device's memory for a ring, but for its first two batches: a batch of `unet3d` is 302 MB, which a loader worker
takes a second to make, and eight of them were 2.4 GB."""

TOLERANCE = 1e-5
"""Largest error of a delivered value, absolute and relative. float32 arithmetic on normalized pixels (up to 3) in
another order errs by some 3e-7; a forgotten mean of 0.13 or a half-precision step (1e-3) is far above."""


@dataclass(frozen=True)
class LoaderPlan:
    """What a rank's loader is asked for. `batch_size` and `workers` are the rank's own totals.

    `persistent` keeps the workers through all epochs; `prefetch` is how many batches each keeps ready, None for torch's
    default of 2.
    """

    batch_size: int
    workers: int
    rank: int
    world_size: int
    distributed: bool
    pin_memory: bool
    seed: int
    persistent: bool = False
    prefetch: Optional[int] = None


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
        _start_epoch(self.dataset, epoch, seed)


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


def make_loader(name: str, dataset: Any, plan: LoaderPlan, device: torch.device) -> Any:
    """Return a loader by its name; all deliver the same samples in the same order for equal plans.

    Parameters
    ----------
    name : str
        ``native`` (torch's DataLoader, sample by sample), ``batched`` (the same, with whole batches made in one go),
        ``resident`` (raw data on the device, batches made there) or ``dali`` (NVIDIA DALI, for images).
    dataset : models.interface.Samples
        What to load; ``native`` takes any data set.
    plan : LoaderPlan
        The rank's share.
    device : torch.device
        Where batches are trained on. ``native`` and ``batched`` deliver on the CPU all the same.

    Returns
    -------
    Any
        An iterable with ``__len__`` (batches an epoch, a partial one included), `dataset`, `batch_size`,
        `num_workers`, `prefetch_factor`, `persistent_workers`, `pin_memory` and `sampler`.

    Raises
    ------
    NotInForce
        The name is unknown, the plan can't be kept, or the data set lacks what the loader needs.
    perf.training.settings.Unavailable
        This stack or device can't do it; the message is the reason.
    """
    if name == "native":
        return native_loader(dataset, plan)
    # Late, so that torch's own loader never pays for the others.
    if name == "batched":
        from perf.training.batched import BatchedLoader

        return BatchedLoader(dataset, plan)
    if name == "resident":
        from perf.training.resident import ResidentLoader

        return ResidentLoader(dataset, plan, device)
    if name == "dali":
        from perf.training.dali import DaliLoader

        return DaliLoader(dataset, plan, device)
    raise NotInForce(f"loader {name!r} is not one that this worker knows: {', '.join(NAMES)}")


def native_loader(dataset: Dataset[Any], plan: LoaderPlan) -> DataLoader[Any]:
    """Return torch's DataLoader as the tutorials set it up: shuffled, pinned on a GPU, workers anew each epoch."""
    return DataLoader(dataset, **torch_arguments(dataset, plan))


def torch_arguments(dataset: Any, plan: LoaderPlan) -> dict[str, Any]:
    """Return what a DataLoader is made with besides its data set.

    Raises
    ------
    NotInForce
        The plan asks for something about workers and has none, or for an empty queue.
    """
    if plan.workers == 0 and (plan.persistent or plan.prefetch is not None):
        asked = "persistent workers" if plan.persistent else f"prefetching {plan.prefetch} batches a worker"
        raise NotInForce(f"the loader has no workers, so {asked} can't be in force; ask for workers too")
    if plan.prefetch is not None and plan.prefetch < 1:
        raise NotInForce(f"a worker must keep at least 1 batch ready, {plan.prefetch} were asked for")
    return {
        "batch_size": plan.batch_size,
        "sampler": make_sampler(dataset, plan),
        "num_workers": plan.workers,
        "pin_memory": plan.pin_memory,
        # The workers' seeds. Not the sampler's generator: new workers draw from it and persistent ones don't, so that
        # from the second epoch on the two would train on other batches.
        "generator": torch.Generator().manual_seed(plan.seed),
        "persistent_workers": plan.persistent,
        "prefetch_factor": plan.prefetch,
    }


def make_sampler(dataset: Any, plan: LoaderPlan) -> Union[DistributedSampler[Any], RandomSampler]:
    """Return what draws the order of samples: the same for every loader, epoch by epoch, for equal plans."""
    if plan.distributed:
        return DistributedSampler(
            dataset, num_replicas=plan.world_size, rank=plan.rank, shuffle=True, seed=plan.seed
        )
    return RandomSampler(dataset, generator=torch.Generator().manual_seed(plan.seed))


def require_batches(name: str, dataset: Any) -> None:
    """Check that a data set makes whole batches.

    Raises
    ------
    NotInForce
        It doesn't; the message says what it lacks.
    """
    inner = _unwrapped(dataset)
    lacking = [method for method in ("tensors", "batch") if not hasattr(inner, method)]
    if lacking:
        raise NotInForce(
            f"loader {name} makes whole batches, and the data set {type(inner).__name__} lacks {', '.join(lacking)} "
            "(see Samples in models/interface.py)"
        )


class RingLoader:
    """A few real batches on the device, handed out in turn: mode ``synthetic``, an epoch as long as the real one."""

    def __init__(self, loader: Any, device: torch.device) -> None:
        self.source = loader
        self._length = len(loader)
        self.batches: list[Any] = []
        for data, target in _first_batches(loader, ring_size(loader.dataset[0], loader.batch_size)):
            if len(target) == loader.batch_size or self._length == 1:
                self.batches.append((data.to(device), target.to(device)))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        """Yield as many batches as the real loader would."""
        for step in range(self._length):
            yield self.batches[step % len(self.batches)]


def ring_size(sample: Sequence[Any], batch_size: int) -> int:
    """Return how many batches a ring has, given one sample: `RING_BATCHES`, fewer of large ones, two at least."""
    size = (
        sum(part.numel() * part.element_size() for part in sample if isinstance(part, torch.Tensor))
        * batch_size
    )
    return max(2, min(RING_BATCHES, RING_BYTES // max(1, size)))


def _first_batches(loader: Any, count: int) -> Iterator[Any]:
    """Yield an epoch's first batches. torch's own loader would have its workers make more, and wait for them."""
    if type(loader) is not DataLoader:
        yield from itertools.islice(loader, count)
        return
    indices = list(itertools.islice(cast("Iterator[list[int]]", loader.batch_sampler), count))
    workers = min(loader.num_workers, len(indices))
    # The same generator gives the same seeds to the workers, which take batches in the same turn. Not pinned: each is
    # copied to the device once.
    yield from DataLoader(
        loader.dataset,
        batch_sampler=indices,
        num_workers=workers,
        collate_fn=loader.collate_fn,
        generator=loader.generator,
    )


def set_epoch(loader: Any, epoch: int, seed: int) -> None:
    """Tell a loader which epoch comes, before its iterator is made.

    A distributed sampler has the same order in every epoch without it, and what is random in the samples themselves
    (`models.interface.Samples.start_epoch`) stays as it was drawn. `seed` is for the latter, another for each rank.
    """
    if isinstance(loader.sampler, DistributedSampler):
        loader.sampler.set_epoch(epoch)
    _start_epoch(loader.dataset, epoch, seed)


def describe(loader: Any) -> dict[str, Any]:
    """Return the settings of a loader, from the object and never from the request; plain values for a record.

    ``loader`` is its name, ``class`` its type. ``start_method`` is how torch's loader starts workers, None for a loader
    that has no worker processes. ``resident`` adds ``device`` and ``bytes``, ``dali`` adds ``device``.
    """
    start_method = None
    if isinstance(loader, DataLoader):
        context = loader.multiprocessing_context or torch.multiprocessing
        start_method = cast(Any, context).get_start_method()
    return {
        "loader": getattr(loader, "loader_name", "native"),
        "class": type(loader).__name__,
        "batch_size": loader.batch_size,
        "workers": loader.num_workers,
        "pin_memory": loader.pin_memory,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": loader.persistent_workers,
        "sampler": type(loader.sampler).__name__,
        "start_method": start_method,
        **getattr(loader, "facts", {}),
    }


def check_delivery(name: str, loader: Any, device: torch.device) -> None:
    """Hold the samples 0, 1 and the last, as a loader makes them, against the data set's plain code.

    So a normalization that was left out or a rotation that was computed and thrown away is found before training. The
    loader's order is not touched. Values may differ by the data set's `tolerance`, `TOLERANCE` where it names none;
    whole numbers may not differ.

    Parameters
    ----------
    name : str
        What the loader is called in the message.
    loader : Any
        What `make_loader` returned.
    device : torch.device
        Where a loader that makes batches on the device must deliver them.

    Raises
    ------
    NotInForce
        A sample differs; the message names loader, index and what differs.
    """
    dataset = loader.dataset
    inner = _unwrapped(dataset)
    if not hasattr(inner, "reference"):
        raise NotInForce(
            f"loader {name}: the data set {type(inner).__name__} has no reference to hold its samples against "
            "(see Samples in models/interface.py)"
        )
    last = len(dataset) - 1
    indices = sorted({0, min(1, last), last})
    batch = _fetch(loader, indices)
    tolerance = float(getattr(dataset, "tolerance", TOLERANCE))
    for place, index in enumerate(indices):
        for part, delivered, expected in zip(("input", "target"), batch, dataset.reference(index)):
            if len(delivered) != len(indices):
                problem: Optional[str] = f"shape: a batch of {len(indices)} samples has {len(delivered)} rows"
            elif hasattr(loader, "fetch") and delivered.device.type != device.type:
                problem = f"device: it lies on {delivered.device}, should lie on {device}"
            else:
                problem = _difference(delivered[place].cpu(), expected, tolerance)
            if problem is not None:
                raise NotInForce(
                    f"loader {name}: {part} of sample {index} is not the data set's reference: {problem}"
                )


def _fetch(loader: Any, indices: list[int]) -> Sequence[torch.Tensor]:
    """Make one batch by a loader's own way of making samples, in this process."""
    if hasattr(loader, "fetch"):
        return cast(Sequence[torch.Tensor], loader.fetch(indices))
    whole = getattr(loader.dataset, "__getitems__", None)
    samples = [loader.dataset[index] for index in indices] if whole is None else whole(indices)
    return cast(Sequence[torch.Tensor], loader.collate_fn(samples))


def _difference(delivered: torch.Tensor, expected: torch.Tensor, tolerance: float) -> Optional[str]:
    """Say how a tensor differs from what was expected; None where it doesn't."""
    if delivered.shape != expected.shape:
        return f"shape: {tuple(delivered.shape)}, expected {tuple(expected.shape)}"
    if delivered.dtype != expected.dtype:
        return f"dtype: {delivered.dtype}, expected {expected.dtype}"
    allowed = tolerance if expected.is_floating_point() else 0.0
    if torch.allclose(delivered, expected, rtol=allowed, atol=allowed):
        return None
    largest = float((delivered.double() - expected.double()).abs().max())
    return f"values: largest difference {largest:.2g}, allowed {allowed:g}"


def _unwrapped(dataset: Any) -> Any:
    while isinstance(dataset, Wrapped):
        dataset = dataset.dataset
    return dataset


def _check_index(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise IndexError(f"sample {index} asked for, the data set has {size}")


def _start_epoch(dataset: Any, epoch: int, seed: int) -> None:
    if hasattr(dataset, "start_epoch"):
        dataset.start_epoch(epoch, seed)
