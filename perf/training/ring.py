"""Mode ``synthetic``: a ring of real batches that lie on the device."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch.utils.data import DataLoader

RING_BATCHES = 8
"""Batches in the ring of mode ``synthetic``: more than one, so that no step meets the very batch it has just seen."""

RING_BYTES = 512 * 2**20
"""Of a device's memory for a ring, but for its first two batches: a batch of `unet3d` is 302 MB, which a loader worker
takes a second to make, and eight of them were 2.4 GB."""


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
