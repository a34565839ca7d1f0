"""Mode ``synthetic``: a ring of real batches that lie on the device."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import torch
from torch.utils.data import DataLoader

RING_BATCHES = 8
"""Batches in the ring of mode ``synthetic``: more than one, so that no step meets the very batch it has just seen."""

RING_BYTES = 512 * 2**20
"""Of a device's memory for a ring, but for its first two batches: a batch of `unet3d` is 302 MB, which a loader worker
takes a second to make, and eight of them were 2.4 GB."""


class RingLoader:
    """A few real batches on the device, handed out in turn: mode ``synthetic``, an epoch as long as the real one.

    A loader's workers are at work from its making on; `batches` waits for them, when it is first looked at: before
    anything is timed, by `filled`.
    """

    def __init__(self, loader: Any, device: torch.device) -> None:
        self.source = loader
        self._length = len(loader)
        count = ring_size(loader.dataset[0], loader.batch_size)
        self._making = first_batches(loader, count, device, parts_of(loader.num_workers, count, device))

    @functools.cached_property
    def batches(self) -> list[Any]:
        """The ring, on the device; whole batches, unless there is one alone."""
        whole = self.source.batch_size
        return [(data, target) for data, target in self._making if len(target) == whole or self._length == 1]

    def filled(self) -> RingLoader:
        """Wait until the ring is on the device, and return it."""
        if not self.batches:
            raise RuntimeError(f"the loader made no whole batch of {self.source.batch_size} for a ring")
        return self

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        """Yield as many batches as the real loader would."""
        batches = self.batches
        for step in range(self._length):
            yield batches[step % len(batches)]


def ring_size(sample: Sequence[Any], batch_size: int) -> int:
    """Return how many batches a ring has, given one sample: `RING_BATCHES`, fewer of large ones, two at least."""
    size = (
        sum(part.numel() * part.element_size() for part in sample if isinstance(part, torch.Tensor))
        * batch_size
    )
    return max(2, min(RING_BATCHES, RING_BYTES // max(1, size)))


def parts_of(workers: int, batches: int, device: torch.device) -> int:
    """Return in how many parts a ring's batches are made: so many that all workers have some, for a GPU.

    Two batches of `unet3d` would keep two of eight workers busy for a second. A GPU puts parts together in no time; on
    the CPU that takes what it saves, since the memory is new.
    """
    return 1 if device.type == "cpu" else max(1, -(-workers // batches))


def first_batches(loader: Any, count: int, device: torch.device, parts: int = 1) -> Iterator[Any]:
    """Have an epoch's first batches made and yield them, on the device. torch's own workers begin at the call.

    Parameters
    ----------
    loader
        What `perf.training.loaders.make_loader` returned.
    count
        How many; fewer where an epoch has fewer.
    device
        Where they are to lie.
    parts
        In how many parts a batch is made by torch's own loader. A sample is its index's alone, whoever makes it.
    """
    if type(loader) is not DataLoader:
        return ((data.to(device), target.to(device)) for data, target in itertools.islice(loader, count))
    # Not the loader itself, whose workers would make more, and be waited for.
    batches = itertools.islice(cast("Iterator[list[int]]", loader.batch_sampler), count)
    divisions = [divided(batch, parts) for batch in batches]
    indices = list(itertools.chain.from_iterable(divisions))
    # The same generator gives the same seeds to the workers. Not pinned: each part is copied to the device once.
    made = iter(
        DataLoader(
            loader.dataset,
            batch_sampler=indices,
            num_workers=min(loader.num_workers, len(indices)),
            collate_fn=loader.collate_fn,
            generator=loader.generator,
        )
    )
    return _put_together(made, map(len, divisions), device)


def _put_together(made: Iterator[Any], parts: Iterable[int], device: torch.device) -> Iterator[Any]:
    """Yield batches that were made in so many parts each."""
    for count in parts:
        there = [(data.to(device), target.to(device)) for data, target in itertools.islice(made, count)]
        yield there[0] if len(there) == 1 else tuple(map(torch.cat, zip(*there)))
    # Its end, so that the workers leave.
    next(made, None)


def divided(indices: Sequence[int], parts: int) -> list[list[int]]:
    """Divide indices into so many runs as equal as can be, in order; none is empty, so there may be fewer."""
    size = -(-len(indices) // max(1, parts))
    return [list(indices[start : start + size]) for start in range(0, len(indices), size)]
