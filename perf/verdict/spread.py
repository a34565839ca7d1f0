"""How much launches of one and the same stack differ, and which margin of a comparison that allows. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from perf.verdict.comparison import compare
from perf.verdict.inputs import positive_logs
from perf.verdict.looks import FIRST_LOOK, LOOKS
from perf.verdict.outcome import Judgement
from perf.verdict.quantiles import chi_square_quantile

__all__ = ["SPREADS_IN_A_MARGIN", "Spread", "halves_in_true_order", "judge_same", "spread_of"]

LEVEL = 0.95
"""Level of the spread's upper bound."""

SPREADS_IN_A_MARGIN = 3.0
"""A margin below three spreads is too small to ask for: at three, equal stacks pass 99.8 % of the time."""


@dataclass(frozen=True)
class Spread:
    """The launch-to-launch spread of one variant.

    Attributes
    ----------
    launches
        How many launches it was found from.
    sd
        Standard deviation of their log values (0.01 is 1 %).
    upper
        Its upper 95 % bound, for normal launches.
    """

    launches: int
    sd: float
    upper: float

    @property
    def least_margin(self) -> float:
        """The smallest margin that a comparison may ask for: three spreads."""
        return SPREADS_IN_A_MARGIN * self.sd


def spread_of(values: Sequence[float]) -> Spread:
    """Return the spread of launches of one stack.

    Parameters
    ----------
    values
        One positive number a launch, at least two.

    Raises
    ------
    ValueError
        If there are fewer, or one is not positive and finite.
    """
    logs = positive_logs(values, "the launches")
    if len(logs) < 2:
        raise ValueError(f"a spread needs two launches or more, got {len(logs)}")
    sd = statistics.stdev(logs)
    freedom = len(logs) - 1
    return Spread(len(logs), sd, sd * math.sqrt(freedom / chi_square_quantile(1.0 - LEVEL, freedom)))


def halves_in_true_order(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Deal launches to two equal sides in the order in which they were made: A B, B A and so on.

    That is how two stacks are interleaved. Dealing them at random would hide an effect of the order, which is what
    A/A launches are there to show. An odd last launch is left out.
    """
    first: list[float] = []
    second: list[float] = []
    for index in range(0, len(values) - 1, 2):
        pair = (values[index], values[index + 1])
        one, other = pair if index % 4 == 0 else (pair[1], pair[0])
        first.append(one)
        second.append(other)
    return first, second


def judge_same(values: Sequence[float], margin: float) -> Judgement | None:
    """Judge A/A launches as if they came from two stacks; None if there are too few for the first look.

    Parameters
    ----------
    values
        Step times of launches of one stack, in the order in which they were made.
    margin
        The relative change that is asked for.
    """
    first, second = halves_in_true_order(values)
    affordable = [look.launches for look in LOOKS if look.launches <= len(first)]
    if not affordable or affordable[-1] < FIRST_LOOK:
        return None
    return compare(second, first, margin=margin, cap=affordable[-1])
