"""Timing of steps, windows and epochs, without a synchronize of ours between two steps.

A window is opened after the warm-up and closed when it holds enough steps. Where an epoch ends inside it, the window
is interrupted: it is closed at the epoch's last step and opened again in the next epoch once the loader is warm. What
lies between belongs to no step: the end of the loader's workers, validation, their new start.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Callable, Optional, Protocol

import torch


class Clock(Protocol):
    """How points in time are taken on a device."""

    def mark(self) -> Any:
        """Take a point in time at the end of the work queued so far."""

    def synchronize(self) -> None:
        """Wait until every device in use is idle."""

    def durations(self, marks: Sequence[Any]) -> list[float]:
        """Return the seconds between consecutive marks. Called when the devices are idle."""


class HostClock:
    """The host's clock, for CPUs and for a loader alone: work is done when the call returns."""

    def mark(self) -> float:
        """Return the time now."""
        return time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is queued on a CPU."""

    def durations(self, marks: Sequence[float]) -> list[float]:
        """Return the seconds between consecutive marks."""
        return [after - before for before, after in zip(marks, marks[1:])]


class CudaClock:
    """CUDA events on the first device, since a host's clock would only see how fast work is queued."""

    def __init__(self, devices: Sequence[torch.device]) -> None:
        self._devices = list(devices)

    def mark(self) -> torch.cuda.Event:
        """Record an event behind the work queued so far."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def synchronize(self) -> None:
        """Wait for every device: `torch.cuda.synchronize` without argument waits for the current one only."""
        for device in self._devices:
            torch.cuda.synchronize(device)

    def durations(self, marks: Sequence[torch.cuda.Event]) -> list[float]:
        """Return the seconds between consecutive events."""
        return [before.elapsed_time(after) / 1000.0 for before, after in zip(marks, marks[1:])]


class Meter:
    """Counts and times the steps of one rank.

    Parameters
    ----------
    clock
        Where points in time come from.
    warmup_steps
        Steps thrown away at the start.
    rewarm_steps
        Steps of every epoch that lie outside the window: the loader's queue fills meanwhile.
    timed_steps, min_seconds
        The window closes when it holds `timed_steps` and its steps fill `min_seconds`; how many steps that takes is
        judged by the warm-up, which must then have at least two.
    stop_when_timed
        Whether training ends with the window.
    agree
        Makes a number of steps the largest of all ranks' (a collective), so that every rank takes the same steps.
    align
        Waits for the other ranks before a window opens.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        warmup_steps: int,
        rewarm_steps: int,
        timed_steps: int,
        min_seconds: float,
        stop_when_timed: bool,
        agree: Callable[[int], int] = int,
        align: Callable[[], None] = lambda: None,
    ) -> None:
        if min_seconds > 0 and warmup_steps < 2:
            raise ValueError(
                f"{warmup_steps} warm-up steps don't tell how many fill {min_seconds} s; at least 2 are needed"
            )
        self._clock = clock
        self.warmup_steps = warmup_steps
        self._rewarm_steps = rewarm_steps
        self._timed_steps = timed_steps
        self._min_seconds = min_seconds
        self._stop_when_timed = stop_when_timed
        self._agree = agree
        self._align = align
        self._half_warm_at: Optional[tuple[int, float]] = None
        self._target: Optional[int] = None
        self._marks: list[list[Any]] = []
        self._open = False
        self._opened_at = 0.0
        self._epoch_step = 0
        self._epoch_started = 0.0
        self._epoch_samples = 0
        self._epoch_ended: Optional[float] = None
        self._first_batch_seconds: Optional[float] = None
        self.losses: list[torch.Tensor] = []
        self.total_steps = 0
        self.window_seconds = 0.0
        self.window_samples = 0
        self.window_steps = 0
        self.wait_seconds = 0.0
        self.first_step_seconds: Optional[float] = None
        self.on_window: Callable[[bool], None] = lambda opens: None

    @property
    def finished(self) -> bool:
        """Whether the window holds all its steps."""
        return self._target is not None and self.window_steps >= self._target

    def start_epoch(self) -> None:
        """Take the time before the loader is asked for anything."""
        self._clock.synchronize()
        self._epoch_step = 0
        self._epoch_samples = 0
        self._epoch_ended = None
        self._first_batch_seconds = None
        self._epoch_started = time.perf_counter()

    def waited(self, seconds: float) -> None:
        """Note how long the host waited for a batch."""
        if self._first_batch_seconds is None:
            self._first_batch_seconds = seconds
        if self._open:
            self.wait_seconds += seconds

    def step(self, loss: Optional[torch.Tensor], samples: int) -> bool:
        """Note the end of a step; return True when training should stop. Reads nothing from the device."""
        self.total_steps += 1
        self._epoch_step += 1
        self._epoch_samples += samples
        if loss is not None:
            self.losses.append(loss.detach())
        if self._open:
            self._marks[-1].append(self._clock.mark())
            self.window_steps += 1
            self.window_samples += samples
            if self.finished:
                self._close()
                return self._stop_when_timed
        elif not self.finished:
            self._warm()
        return False

    def last_step(self) -> None:
        """Note that the loader has no batch left, before it is asked for one: that would wait for its workers' end."""
        if self._open:
            self._close()
        self._clock.synchronize()
        self._epoch_ended = time.perf_counter()

    def end_epoch(self) -> tuple[float, int, int, float]:
        """Close what is open and return the epoch's seconds, batches, samples and wait for its first batch."""
        if self._epoch_ended is None or self._open:
            self.last_step()
        assert self._epoch_ended is not None
        seconds = self._epoch_ended - self._epoch_started
        return seconds, self._epoch_step, self._epoch_samples, self._first_batch_seconds or 0.0

    def step_seconds(self) -> list[float]:
        """Return the seconds of each step of the window."""
        return [seconds for marks in self._marks for seconds in self._clock.durations(marks)]

    def _warm(self) -> None:
        if self.total_steps == 1:
            self._clock.synchronize()
            self.first_step_seconds = time.perf_counter() - self._epoch_started
        if self.total_steps == max(1, self.warmup_steps // 2):
            self._clock.synchronize()
            self._half_warm_at = (self.total_steps, time.perf_counter())
        if self.total_steps >= self.warmup_steps and self._epoch_step >= self._rewarm_steps:
            self._open_window()

    def _open_window(self) -> None:
        self._clock.synchronize()
        if self._target is None:
            self._target = self._agree(self._steps_wanted())
        self._align()
        self._clock.synchronize()
        self._open = True
        self.on_window(True)
        self._marks.append([self._clock.mark()])
        self._opened_at = time.perf_counter()

    def _close(self) -> None:
        self._clock.synchronize()
        self.window_seconds += time.perf_counter() - self._opened_at
        self._open = False
        self.on_window(False)

    def _steps_wanted(self) -> int:
        """Return how many steps fill the window's least time, judged by the second half of the warm-up."""
        if self._half_warm_at is None or self._min_seconds <= 0:
            return self._timed_steps
        steps, at = self._half_warm_at
        per_step = (time.perf_counter() - at) / max(1, self.total_steps - steps)
        # The loader may have restarted meanwhile; a tenth more keeps the window above its least time.
        return max(self._timed_steps, math.ceil(1.1 * self._min_seconds / max(per_step, 1e-6)))


class Watched:
    """A loader whose waits are noted: iterates like the loader itself."""

    def __init__(self, loader: Iterable[Any], meter: Meter) -> None:
        self.loader = loader
        self._meter = meter

    def __iter__(self) -> Iterator[Any]:
        """Yield the loader's batches; the first wait holds the start of its workers."""
        left = len(self.loader) if isinstance(self.loader, Sized) else -1
        before = time.perf_counter()
        batches = iter(self.loader)
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._meter.waited(time.perf_counter() - before)
            yield batch
            left -= 1
            if left == 0:
                self._meter.last_step()
            before = time.perf_counter()


def halves(step_seconds: Sequence[float]) -> list[float]:
    """Return the medians of the first and the second half of a window; empty for fewer than two steps."""
    if len(step_seconds) < 2:
        return []
    middle = len(step_seconds) // 2
    return [statistics.median(step_seconds[:middle]), statistics.median(step_seconds[middle:])]
