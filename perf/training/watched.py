"""A loader whose waits are noted, and whose epochs' ends are told."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from perf.training.meter import Meter


class Watched:
    """A loader whose waits are noted and whose epochs' ends are told: iterates like the loader itself.

    Parameters
    ----------
    loader
        What delivers the batches.
    meter
        Who is told of each wait, of an epoch's first batch and of its end.
    partial
        Whether an epoch's last batch is a partial one, before which the window is interrupted.
    waits
        Whether there is anything to wait for. Batches that lie on the device are handed on as they are: to note each
        time that there was no wait takes microseconds, which are seen where the host holds a network up.
    """

    def __init__(
        self, loader: Iterable[Any], meter: Meter, *, partial: bool = False, waits: bool = True
    ) -> None:
        self.loader = loader
        self.first_batch: Any = None
        self._meter = meter
        self._partial = partial
        self._waits = waits

    def __iter__(self) -> Iterator[Any]:
        """Yield the loader's batches; the first wait holds the start of its workers."""
        return self._noted() if self._waits else self._handed_on()

    def _handed_on(self) -> Iterator[Any]:
        """Iterate over batches that are there; between two of them nothing here is run but the chain of C's."""
        before = time.perf_counter()
        batches = iter(self.loader)
        first = list(itertools.islice(batches, 1))
        if first:
            self._begin(first[0], time.perf_counter() - before)
        ended = self._ended() if isinstance(self.loader, Sized) else ()
        return itertools.chain(first, batches, ended)

    def _ended(self) -> Iterator[Any]:
        """Tell of an epoch's end, and yield nothing."""
        self._meter.last_step()
        yield from ()

    def _begin(self, batch: Any, waited: float) -> None:
        """Tell of an epoch's first batch, and keep the first one of all."""
        self._meter.first_batch(waited)
        if self.first_batch is None:
            self.first_batch = batch

    def _noted(self) -> Iterator[Any]:
        """Yield a loader's batches, and note how long each was waited for."""
        meter, clock, note = self._meter, time.perf_counter, self._meter.waits.append
        left = len(self.loader) if isinstance(self.loader, Sized) else -1
        first = True
        before = clock()
        for batch in self.loader:
            waited = clock() - before
            if first:
                first = False
                self._begin(batch, waited)
            note(waited)
            yield batch
            left -= 1
            if left == 0:
                meter.last_step()
            elif left == 1 and self._partial:
                meter.interrupt()
            before = clock()
