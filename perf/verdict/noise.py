"""Launch medians to try the rules on: our own model of a machine's noise. Needs numpy; only the simulation imports it.

All values are log step times. Two sides are interleaved ABBA, as they are measured, so a slot in time
belongs to each launch, and what changes in time touches both sides alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "Noise", "Values", "slots"]

Values = NDArray[np.float64]

SIDES = 16
"""Launches a side that are drawn: the last look."""

Draw = Callable[[np.random.Generator, int, float], tuple[Values, Values]]


@dataclass(frozen=True)
class Noise:
    """One kind of noise.

    Attributes
    ----------
    name, meaning
        How it is told.
    draw
        (generator, pairs, launch-level sd) -> (new, base), each of shape (pairs, 16), log units.
    exchangeable
        Whether the launches of the two sides are exchangeable but for the shift, so that the promise of
        at most 5 % wrong passes holds exactly. Noise that ties launches together in time (drift,
        autocorrelation) breaks the assumption of independent launches.
    """

    name: str
    meaning: str
    draw: Draw
    exchangeable: bool = True


def slots(launches: int = SIDES) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the slots in time of the two sides' launches under ABBA interleaving, each of shape (launches,)."""
    order = np.array(([0, 1, 1, 0] * launches)[: 2 * launches])
    return np.flatnonzero(order == 1), np.flatnonzero(order == 0)


def _both(values: Values) -> tuple[Values, Values]:
    """Split (pairs, 32) slots in time into new and base."""
    new, base = slots()
    return values[:, new], values[:, base]


def _clean(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    return _both(sd * rng.standard_normal((pairs, 2 * SIDES)))


def _disturbed(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    values = sd * rng.standard_normal((pairs, 2 * SIDES))
    hit = rng.random(values.shape) < 0.05
    values[hit] += np.log1p(rng.uniform(0.03, 0.20, int(hit.sum())))
    return _both(values)


def _drifting(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    values = sd * rng.standard_normal((pairs, 2 * SIDES))
    # A drift of up to three sds over 20 launches (ten a side), up or down: a warming or emptying machine.
    slope = rng.uniform(-3.0, 3.0, (pairs, 1)) * sd / 20.0
    return _both(values + slope * np.arange(2 * SIDES))


def _autocorrelated(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    values = rng.standard_normal((pairs, 2 * SIDES))
    phi = 0.5
    for slot in range(1, 2 * SIDES):
        values[:, slot] = phi * values[:, slot - 1] + np.sqrt(1.0 - phi**2) * values[:, slot]
    return _both(sd * values)


def _bimodal(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    # An autotuner that picks one of two algorithms at each launch, four sds apart, with a frequency of its own.
    slow = rng.random((pairs, 2 * SIDES)) < rng.uniform(0.1, 0.9, (pairs, 1))
    return _both(sd * rng.standard_normal((pairs, 2 * SIDES)) + 4.0 * sd * slow)


def _two_points(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    # The worst case of the gross rule: two values, equally likely, with nothing in between.
    return _both(sd * (rng.random((pairs, 2 * SIDES)) < 0.5) + 1e-6 * sd * rng.random((pairs, 2 * SIDES)))


def _heavy(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    return _both(sd * rng.standard_t(2.0, (pairs, 2 * SIDES)))


def _steps(rng: np.random.Generator, pairs: int, sd: float) -> tuple[Values, Values]:
    """Draw launches from their steps: an effect of the launch, 100 autocorrelated steps, outliers; take medians."""
    steps, phi, step_sd, outliers = 100, np.float32(0.5), np.float32(0.02), 0.015
    values = np.empty((pairs, 2 * SIDES))
    for slot in range(2 * SIDES):
        noise = rng.standard_normal((steps, pairs), dtype=np.float32)
        for step in range(1, steps):
            noise[step] = phi * noise[step - 1] + np.sqrt(1 - phi**2) * noise[step]
        noise *= step_sd
        # Which steps are outliers: a binomial number of places, spread over the block.
        hits = rng.integers(0, noise.size, rng.binomial(noise.size, outliers))
        noise.reshape(-1)[hits] += np.log(rng.uniform(2.0, 10.0, hits.size)).astype(np.float32)
        values[:, slot] = np.median(noise, axis=0)
    return _both(values + sd * rng.standard_normal(values.shape))


KINDS: tuple[Noise, ...] = (
    Noise("clean", "normal launch effects", _clean),
    Noise("disturbed", "normal, and 5 % of launches slower by 3 to 20 %", _disturbed),
    Noise("drifting", "normal, and a drift of up to 3 sd over 20 launches", _drifting, exchangeable=False),
    Noise("autocorrelated", "neighbours in time correlate by 0.5", _autocorrelated, exchangeable=False),
    Noise("bimodal", "one of two algorithms, 4 sd apart, at each launch", _bimodal),
    Noise("two points", "two distant values, equally likely", _two_points),
    Noise("heavy tails", "Student's t with 2 degrees of freedom", _heavy),
    Noise("steps", "medians of 100 steps with correlation 0.5 and 1.5 % outliers of 2 to 10 times", _steps),
)
