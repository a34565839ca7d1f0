"""Timing of steps, windows and epochs, without a synchronize of ours between two steps.

A window is opened after the warm-up and closed when it holds enough steps. Where an epoch ends inside it, the window
is interrupted: it is closed at the epoch's last whole batch and opened again in the next epoch once the loader is warm.
What lies between belongs to no step: a partial batch, the end of the loader's workers, validation, their new start.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from perf.training.clocks import Action, Clock
from perf.training.lengths import Lengths
from perf.training.looks import Looks


class Meter:
    """Counts and times the steps of one rank.

    A loop calls `step` with each step's loss and targets, and ends where that returns True. It reads nothing from the
    device. A small network is bound by the host, so inside the window it does as little as can be, and is the clock's
    own function there: what it touches is no longer in the core's caches, and takes several times as long as in a loop
    of its own.

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
        judged by the warm-up, which must then have at least two. With `timed_steps` 0 there is no window.
    max_seconds
        Where `timed_steps` would take longer, fewer do, down to `perf.contract.FEWEST_STEPS`; 0: no limit. With one,
        the window has also ended where an epoch's end leaves one step in `perf.contract.SPARED` lacking, or less, and
        fewer than `rewarm_steps`.
    warmup_seconds
        Where the warm-up would take longer, it has fewer steps, down to `perf.contract.FEWEST_WARM_UP` and to
        `rewarm_steps`; how many is judged by the second half of these. 0: no limit.
    captured
        Whether a CUDA graph is captured in step `perf.training.lengths.CAPTURED`: the warm-up then has
        `perf.contract.FEWEST_WITH_CAPTURE` at least.
    stop_when_timed
        Whether training ends with the window.
    agree
        Makes a number of steps the largest of all ranks' (a collective), so that every rank takes the same steps.
    align
        Waits for the other ranks before a window opens.
    edges
        Whether a window's first and last tenth are looked at step by step; who measures the meter takes what lies
        between.
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
        max_seconds: float = 0.0,
        warmup_seconds: float = 0.0,
        captured: bool = False,
        agree: Callable[[int], int] = int,
        align: Callable[[], None] = lambda: None,
        edges: bool = True,
    ) -> None:
        self._clock = clock
        self._lengths = Lengths(
            warmup_steps=warmup_steps,
            rewarm_steps=rewarm_steps,
            timed_steps=timed_steps,
            min_seconds=min_seconds,
            max_seconds=max_seconds,
            warmup_seconds=warmup_seconds,
            captured=captured,
            agree=agree,
        )
        self._stop_when_timed = stop_when_timed
        self._align = align
        self._looks = Looks(edges=edges)
        self._left: Optional[int] = None if timed_steps > 0 else 0
        self._stretches: list[Sequence[Any]] = []
        self._marks: Sequence[Any] = []
        self._open = False
        self._opened_at = 0.0
        self._opened_waits = 0
        self._steps = 0
        self._samples = 0
        self._epoch_first_step = 0
        self._epoch_first_sample = 0
        self._epoch_started = 0.0
        self._epoch_ended: Optional[float] = None
        self._first_batch_seconds: Optional[float] = None
        self.step: Action = self._outside
        self.losses, self.loss_steps = self._looks.losses, self._looks.loss_steps
        self.waits: list[float] = []
        self.window_seconds = 0.0
        self.window_samples = 0
        self.window_steps = 0
        self.wait_seconds = 0.0
        self.drain_seconds: Optional[float] = None
        self.first_step_seconds: Optional[float] = None
        self.on_window: Callable[[bool], None] = lambda opens: None
        self.on_dropped: Callable[[], None] = lambda: None

    @property
    def finished(self) -> bool:
        """Whether the window holds all its steps."""
        return self._left == 0

    @property
    def warmup_steps(self) -> int:
        """Steps thrown away at the start; fewer than were asked for where these would take too long."""
        return self._lengths.warmup_steps

    @property
    def clock(self) -> Optional[str]:
        """What the window's steps are timed by, as clocks call it; ``mixed`` for both, None without a window."""
        names = {self._clock.name(marks) for marks in self._stretches if len(marks) > 1}
        return "mixed" if len(names) > 1 else next(iter(names), None)

    @property
    def total_steps(self) -> int:
        """Steps so far, warm-up included."""
        return self._steps + (self._looks.taken if self._open else 0)

    def start_epoch(self) -> None:
        """Take the time before the loader is asked for anything."""
        self._clock.synchronize()
        self._epoch_first_step, self._epoch_first_sample = self._steps, self._samples
        self._epoch_ended = None
        self._first_batch_seconds = None
        self._epoch_started = time.perf_counter()

    def _outside(self, loss: Optional[torch.Tensor], target: torch.Tensor) -> bool:
        """Note a step outside the window, and open that where it is time."""
        samples, partial = self._looks.outside(loss, target, self._steps)
        self._steps += 1
        self._samples += samples
        if self._left != 0:
            self._warm(partial)
        return False

    def interrupt(self) -> None:
        """Close the window where it is open, before an epoch's partial batch is asked for.

        Such a batch is in no window: it takes another time, and cuDNN's autotuning searches anew for its shape, which
        held a window of `resnet50` up for seconds.
        """
        if self._open:
            self._close()
            self._leave_it_at_that()

    def last_step(self) -> None:
        """Note that the loader has no batch left, before it is asked for one: that would wait for its workers' end."""
        if self._open:
            self._close()
            self._leave_it_at_that()
        self._clock.synchronize()
        self._epoch_ended = time.perf_counter()

    def _leave_it_at_that(self) -> None:
        """End a window that an epoch's end has interrupted, where it has enough."""
        assert self._left is not None
        if self._lengths.suffice(self.window_seconds, self.window_steps, self._left):
            self._left = 0

    def end_epoch(self) -> tuple[float, int, int, float]:
        """Close what is open and return the epoch's seconds, batches, samples and wait for its first batch."""
        if self._epoch_ended is None or self._open:
            self.last_step()
        assert self._epoch_ended is not None
        seconds = self._epoch_ended - self._epoch_started
        batches, samples = self._steps - self._epoch_first_step, self._samples - self._epoch_first_sample
        return seconds, batches, samples, self._first_batch_seconds or 0.0

    def first_batch(self, seconds: float) -> None:
        """Note how long an epoch's first batch took, the start of the loader's workers included."""
        self._first_batch_seconds = seconds

    def step_seconds(self) -> list[float]:
        """Return the seconds of each step of the window."""
        return [seconds for marks in self._stretches for seconds in self._clock.durations(marks)]

    def _warm(self, partial: bool) -> None:
        steps = self.total_steps
        if steps == 1:
            self._clock.synchronize()
            self.first_step_seconds = time.perf_counter() - self._epoch_started
        self._lengths.judge(steps, self._clock.synchronize)
        # No window begins behind a partial batch: its epoch is over.
        if self._lengths.are_warm(steps, steps - self._epoch_first_step) and not partial:
            self.open_window()

    def open_window(self) -> None:
        """Open the window now, whatever the warm-up."""
        queued_at = time.perf_counter()
        self._clock.synchronize()
        if self._left is None:
            pace = self._lengths.pace(self._steps)
            if pace is not None:
                self._clock.suit(time.perf_counter() - queued_at, pace)
            self._left = self._lengths.window(self._steps)
            self._looks.spread(self._left)
        begin, step, self._marks = self._clock.marks(
            self._looks.plan(self._steps, self.window_steps, self._left, self._full)
        )
        self._align()
        self._clock.synchronize()
        self._open = True
        self.on_window(True)
        self._opened_waits = len(self.waits)
        self.step = step
        begin()
        self._opened_at = time.perf_counter()

    def _full(self) -> bool:
        """Close the window; where its steps were faster than the warm-up's, go on until it has its least time."""
        self._close()
        if self._left:
            # Its last stretch was dropped.
            self.open_window()
            return False
        more = self._lengths.more(self.window_seconds, self.window_steps)
        if more:
            self._left = more
            self._looks.spread(self.window_steps + more)
            self.open_window()
            return False
        return self._stop_when_timed

    def _close(self) -> None:
        queued_at = time.perf_counter()
        self._clock.synchronize()
        assert self._left is not None
        steps, samples = self._looks.taken, self._looks.samples
        closed_at = time.perf_counter()
        self.drain_seconds = closed_at - queued_at
        seconds = closed_at - self._opened_at
        self._steps += steps
        self._samples += samples
        self._open = False
        self.step = self._outside
        if steps and not self._clock.fits(self.drain_seconds, seconds / steps):
            self.on_dropped()
            return
        self.on_window(False)
        self.window_seconds += seconds
        self.wait_seconds += sum(self.waits[self._opened_waits :])
        self.window_steps += steps
        self.window_samples += samples
        self._left -= steps
        self._stretches.append(self._marks[: steps + 1])


def halves(step_seconds: Sequence[float]) -> list[float]:
    """Return the medians of the first and the second half of a window; empty for fewer than two steps."""
    if len(step_seconds) < 2:
        return []
    middle = len(step_seconds) // 2
    return [statistics.median(step_seconds[:middle]), statistics.median(step_seconds[middle:])]
