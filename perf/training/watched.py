"""A loader whose waits are noted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import torch

from perf.training.meter import Meter


class Watched:
    """A loader whose waits are noted: iterates like the loader itself."""

    def __init__(self, loader: Iterable[Any], meter: Meter) -> None:
        self.loader = loader
        self.first_batch: Any = None
        self._meter = meter

    def __iter__(self) -> Iterator[Any]:
        """Yield the loader's batches; the first wait holds the start of its workers."""
        meter, clock, note = self._meter, time.perf_counter, self._meter.waits.append
        length = left = len(self.loader) if isinstance(self.loader, Sized) else -1
        at_an_end = True
        before = clock()
        for batch in self.loader:
            waited = clock() - before
            if at_an_end:
                at_an_end = False
                self._note_end(batch, waited, first=left == length, last=left == 1)
            note(waited)
            yield batch
            left -= 1
            if left < 2:
                at_an_end = left == 1
                if left == 0:
                    meter.last_step()
            before = clock()

    def _note_end(self, batch: Any, waited: float, *, first: bool, last: bool) -> None:
        """Note an epoch's first batch or its last, which may be one."""
        if first:
            self._meter.first_batch(waited)
            if self.first_batch is None:
                self.first_batch = batch
        if last:
            # Of an audit's batch, which is numbers, or of its targets.
            self._meter.last_batch((batch if isinstance(batch, torch.Tensor) else batch[-1]).size(0))
