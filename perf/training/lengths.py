"""How many steps a warm-up and a window have: as many as were asked for, and as their times and limits make of that."""

from __future__ import annotations

import math
import time
from typing import Callable, Optional

from perf.contract import FEWEST_STEPS, FEWEST_WARM_UP, FEWEST_WITH_CAPTURE, SPARED

CAPTURED = 12
"""The step in which a CUDA graph is captured, much longer than those that it then replays; `perf.training.steps` keeps
to it. No pace is taken before."""


class Lengths:
    """Judges by the warm-up's pace how many steps fill a time. Ranks agree on each number.

    Parameters
    ----------
    warmup_steps, rewarm_steps, timed_steps, min_seconds, max_seconds, warmup_seconds, captured, agree
        As for `perf.training.meter.Meter`.

    Attributes
    ----------
    warmup_steps
        Steps thrown away at the start, as far as is known.
    """

    def __init__(
        self,
        *,
        warmup_steps: int,
        rewarm_steps: int,
        timed_steps: int,
        min_seconds: float,
        max_seconds: float,
        warmup_seconds: float,
        captured: bool,
        agree: Callable[[int], int],
    ) -> None:
        if min_seconds > 0 and warmup_steps < 2:
            raise ValueError(
                f"{warmup_steps} warm-up steps don't tell how many fill {min_seconds} s; at least 2 are needed"
            )
        if max_seconds > 0 and not 0 < min_seconds <= max_seconds:
            raise ValueError(
                f"a window of at most {max_seconds} s needs a least time below that, got {min_seconds}"
            )
        self.warmup_steps = warmup_steps
        self._rewarm_steps = rewarm_steps
        self._timed_steps = timed_steps
        self._min_seconds = min_seconds
        self._max_seconds = max_seconds
        self._warmup_seconds = warmup_seconds
        self._captured = captured
        self._agree = agree
        self._half_warm_at: Optional[tuple[int, float]] = None

    def judge(self, steps: int, synchronize: Callable[[], None]) -> None:
        """Take the pace where it is time for that, and judge the warm-up by it.

        Parameters
        ----------
        steps
            So many were taken, the last of them just now.
        synchronize
            Waits until the devices are idle; called where a time is taken.
        """
        if steps == FEWEST_WARM_UP and self._warmup_seconds > 0:
            synchronize()
            self._shorten(steps)
        if steps == self._half() or (steps == FEWEST_WARM_UP // 2 and self._warmup_seconds > 0):
            synchronize()
            self._half_warm_at = (steps, time.perf_counter())

    def pace(self, steps: int) -> Optional[float]:
        """Return the seconds of a step since the pace was last taken; never nothing, None where it never was."""
        if self._half_warm_at is None:
            return None
        before, at = self._half_warm_at
        return max((time.perf_counter() - at) / max(1, steps - before), 1e-6)

    def are_warm(self, steps: int, epoch_steps: int) -> bool:
        """Return whether a window may begin behind so many steps, so many of them of this epoch."""
        return steps >= self.warmup_steps and epoch_steps >= self._rewarm_steps

    def window(self, steps: int) -> int:
        """Return how many steps fill the window, judged by those of the warm-up since its half; a collective."""
        wanted, pace = self._timed_steps, self.pace(steps)
        if pace is not None and self._min_seconds > 0:
            if self._max_seconds > 0:
                wanted = min(wanted, max(FEWEST_STEPS, math.ceil(self._max_seconds / pace)))
            # The loader may have restarted meanwhile; a tenth more keeps the window above its least time.
            wanted = max(wanted, math.ceil(1.1 * self._min_seconds / pace))
        return self._agree(wanted)

    def more(self, seconds: float, steps: int) -> int:
        """Return how many steps a window of so many seconds and steps lacks of its least time; a collective."""
        if self._min_seconds <= 0:
            return 0
        lacking = max(0.0, self._min_seconds - seconds)
        # Every rank asks, also one that lacks nothing.
        return self._agree(math.ceil(1.1 * lacking * steps / seconds))

    def suffice(self, seconds: float, steps: int, left: int) -> bool:
        """Return whether a window that an epoch's end has interrupted is left at what it has; a collective.

        What it lacks may cost more than it tells, since an epoch's first steps are thrown away. For one step that was
        lacking, a launch of DataParallel trained 48 others of 0.28 s each (docs/measurements/2026-11-29-h200-x4).
        """
        spared = (steps + left) // SPARED
        few = self._max_seconds > 0 and 0 < left <= min(spared, self._rewarm_steps - 1)
        # Ranks lack as many steps, and not as many seconds: they ask each other.
        return few and not self._agree(int(seconds < self._min_seconds))

    def _half(self) -> int:
        """Return the step behind which the pace is taken: in the middle, behind the capture of a CUDA graph."""
        middle = max(1, self.warmup_steps // 2)
        return max(middle, CAPTURED) if self._captured else middle

    def _shorten(self, steps: int) -> None:
        """Take no more steps of warm-up than fill its time at the pace of the last few, which compile nothing more."""
        pace = self.pace(steps)
        assert pace is not None
        enough = math.ceil(self._warmup_seconds / pace)
        fewest = max(FEWEST_WITH_CAPTURE if self._captured else FEWEST_WARM_UP, self._rewarm_steps, enough)
        self.warmup_steps = self._agree(min(self.warmup_steps, fewest))
