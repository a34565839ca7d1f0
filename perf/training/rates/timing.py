"""How a rate is taken: warm up, find out how many calls fill a repetition, repeat while there is time.

A repetition is timed by the host's clock with the devices synchronized at both ends. It lasts at least `LEAST_SECONDS`,
beside which a synchronize (some 10 microseconds) is nothing.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from perf.contract import Rate

LEAST_SECONDS = 0.02
"""Of a repetition: long beside a clock's tick and a synchronize, short beside the time that one rate is given."""

FEWEST = 3
"""Repetitions of which a median says more than a single one does."""

MOST = 15
"""Repetitions beyond which the median of one launch no longer gains: launches differ more than their repetitions."""

FASTEST_GROWTH = 10
"""Calls of a repetition grow at most so much at a time: the first ones are slow, and tell too little."""


def nothing() -> None:
    """Do nothing: what lies between the repetitions of most rates."""


def alone(number: int) -> int:
    """Return a number as it is: a rank that has nobody to agree with."""
    return number


@dataclass(frozen=True)
class Timer:
    """What repetitions are taken with.

    Parameters
    ----------
    synchronize
        Waits until every device in use is idle.
    box
        Seconds that one rate may take, warm-up included. A rate whose single call takes longer overruns it.
    agree
        Returns the largest of all ranks' numbers, so that all of them repeat a collective equally often.
    """

    synchronize: Callable[[], None]
    box: float
    agree: Callable[[int], int] = alone

    def repeat(
        self, work: Callable[[], object], *, prepare: Callable[[], object] = nothing, single: bool = False
    ) -> list[float]:
        """Return the seconds of one call of `work`, one number a repetition.

        Parameters
        ----------
        work
            What is timed. Its first calls are thrown away.
        prepare
            Called before each repetition, outside its time.
        single
            Whether a repetition is one call however short it is, because each needs its preparation.
        """
        begun = time.perf_counter()
        prepare()
        seconds = self._timed(work, 1)
        calls = 1
        while not single:
            prepare()
            seconds = self._timed(work, calls)
            factor = self.agree(growth(seconds))
            if factor == 1:
                break
            calls *= factor
        left = self.box - (time.perf_counter() - begun)
        taken = []
        for _ in range(self.agree(repetitions(left, seconds, self.box))):
            prepare()
            taken.append(self._timed(work, calls) / calls)
        return taken

    def _timed(self, work: Callable[[], object], calls: int) -> float:
        self.synchronize()
        before = time.perf_counter()
        for _ in range(calls):
            work()
        self.synchronize()
        return time.perf_counter() - before


def growth(seconds: float) -> int:
    """Return by how much the calls of a repetition must grow; 1 if it lasted long enough."""
    if seconds >= LEAST_SECONDS:
        return 1
    # At least twice: a repetition that is just too short would else be tried again and again.
    return max(2, min(FASTEST_GROWTH, math.ceil(LEAST_SECONDS / max(seconds, 1e-9))))


def repetitions(left: float, seconds: float, box: float) -> int:
    """Return how many repetitions of `seconds` each are taken in the time `left`: 1 where one alone fills the box."""
    if seconds > box:
        return 1
    return max(FEWEST, min(MOST, int(left / max(seconds, 1e-9))))


def rate(amount: float, unit: str, seconds: Sequence[float], **about: Any) -> Rate:
    """Return the rate of a work of `amount` a call, from the seconds of one call in each repetition."""
    values = [amount / taken for taken in seconds]
    return Rate(
        value=statistics.median(values),
        unit=unit,
        repetitions=values,
        spread=statistics.stdev(math.log(value) for value in values) if len(values) > 1 else None,
        about=about,
    )


def missing(unit: str, reason: str, **about: Any) -> Rate:
    """Return a rate that could not be had, with the reason."""
    return Rate(value=None, unit=unit, about=about, reason=reason)
