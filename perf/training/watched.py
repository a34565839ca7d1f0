"""A loader whose waits are noted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from perf.training.meter import Meter


class Watched:
    """A loader whose waits are noted: iterates like the loader itself.

    Parameters
    ----------
    loader
        What delivers the batches.
    meter
        Who is told of each wait, of an epoch's first batch and of its end.
    partial
        Whether an epoch's last batch is a partial one, before which the window is interrupted.
    """

    def __init__(self, loader: Iterable[Any], meter: Meter, *, partial: bool = False) -> None:
        self.loader = loader
        self.first_batch: Any = None
        self._meter = meter
        self._partial = partial

    def __iter__(self) -> Iterator[Any]:
        """Yield the loader's batches; the first wait holds the start of its workers."""
        meter, clock, note = self._meter, time.perf_counter, self._meter.waits.append
        left = len(self.loader) if isinstance(self.loader, Sized) else -1
        first = True
        before = clock()
        for batch in self.loader:
            waited = clock() - before
            if first:
                first = False
                meter.first_batch(waited)
                if self.first_batch is None:
                    self.first_batch = batch
            note(waited)
            yield batch
            left -= 1
            if left == 0:
                meter.last_step()
            elif left == 1 and self._partial:
                meter.interrupt()
            before = clock()
