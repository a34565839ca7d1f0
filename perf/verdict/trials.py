"""The trials of the simulation: how often the rules say what, under noise that we know. Needs numpy.

Seeds are fixed: the same call gives the same counts on the same numpy.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perf.verdict import comparison, stalls
from perf.verdict.decide import Question
from perf.verdict.detectable import detectable_change
from perf.verdict.floors import LEAST_TOLERANCE, LEVEL, PRIOR_FREEDOM, PRIOR_SPREAD
from perf.verdict.noise import KINDS, SIDES, Noise, Values
from perf.verdict.quantiles import student_t_quantile
from perf.verdict.vectorized import FAIL, PASS, decide_many, judge_one_sample_many

__all__ = [
    "FloorRates",
    "Rates",
    "ab_trial",
    "fixed_trial",
    "floor_trial",
    "noise",
    "one_sample_trial",
    "printed_power",
    "stall_trial",
]

SEED = 20261127

CHUNK = 40_000
"""Pairs at a time: 40,000 x 256 differences are 80 MB."""


@dataclass(frozen=True)
class Rates:
    """Counts of verdicts over `cases` judgements, and the launches a side that they took in all."""

    cases: int
    fails: int
    passes: int
    launches: int

    @property
    def fail(self) -> float:
        """Share of judgements that failed."""
        return self.fails / self.cases

    @property
    def passed(self) -> float:
        """Share of judgements that passed."""
        return self.passes / self.cases

    @property
    def mean_launches(self) -> float:
        """Mean launches a side."""
        return self.launches / self.cases

    def __add__(self, other: Rates) -> Rates:
        return Rates(
            self.cases + other.cases,
            self.fails + other.fails,
            self.passes + other.passes,
            self.launches + other.launches,
        )


NOTHING = Rates(0, 0, 0, 0)


def noise(name: str) -> Noise:
    """Return the kind of noise with this name."""
    return next(kind for kind in KINDS if kind.name == name)


def _chunks(cases: int, *key: object) -> Iterator[tuple[np.random.Generator, int]]:
    """Yield a generator and a number of cases at a time; `key` names the trial and picks the seed."""
    rng = np.random.default_rng([SEED, zlib.crc32(repr(key).encode())])
    for start in range(0, cases, CHUNK):
        yield rng, min(CHUNK, cases - start)


def _rates(worse: Values, better: Values, question: Question, cap: int) -> Rates:
    codes, used = decide_many(worse, better, question, cap)
    return Rates(len(codes), int((codes == FAIL).sum()), int((codes == PASS).sum()), int(used.sum()))


def ab_trial(
    kind: Noise, sd: float, slowdowns: Sequence[float], pairs: int, *, margin: float = 0.02, cap: int = 16
) -> tuple[Rates, ...]:
    """Judge `pairs` simulated A/Bs, once for each true slowdown, with the same noise.

    Parameters
    ----------
    kind, sd
        Noise and its launch-level sd (log units).
    slowdowns
        True relative slowdowns of the new side.
    pairs
        Judgements for each slowdown.
    margin, cap
        As in ``comparison.compare``.
    """
    question = comparison.question_for(margin)
    totals = [NOTHING] * len(slowdowns)
    for rng, size in _chunks(pairs, "ab", kind.name, sd):
        new, base = kind.draw(rng, size, sd)
        for place, slowdown in enumerate(slowdowns):
            totals[place] += _rates(new + math.log1p(slowdown), base, question, cap)
    return tuple(totals)


def printed_power(sd: float, pairs: int, *, margin: float = 0.02, cap: int = 16) -> float:
    """Return the true power at the detectable change that is printed, averaged over unchanged A/Bs.

    Each A/B prints a change from its own spread; the power that the rules really have there is read off
    a power curve of the same noise, on a grid of 64 shifts of `pairs` / 10 judgements.
    """
    question = comparison.question_for(margin)
    printed: list[float] = []
    curve = np.zeros(64)
    shifts = np.linspace(0.0, 16.0 * sd + question.far, len(curve))
    for rng, size in _chunks(pairs, "printed", sd, margin, cap):
        new, base = noise("clean").draw(rng, size, sd)
        _, used = decide_many(new, base, question, cap)
        for n in np.unique(used):
            rows = used == n
            spreads = np.sqrt((new[rows, :n].var(axis=1, ddof=1) + base[rows, :n].var(axis=1, ddof=1)) / 2.0)
            changes = [detectable_change(float(s), int(n), margin=question.far, cap=cap) for s in spreads]
            printed.extend(change for change in changes if change is not None)
        part = slice(0, max(1, size // 10))
        for place, shift in enumerate(shifts):
            curve[place] += _rates(new[part] + shift, base[part], question, cap).fail * size / pairs
    return float(np.interp(printed, shifts, curve).mean())


def fixed_trial(
    kind: Noise, sd: float, outside: Sequence[float], pairs: int, *, cap: int = 16
) -> tuple[Rates, ...]:
    """Judge ratios that lie `outside` their fixed limit by so many sds (negative: inside)."""
    question = Question(zero=0.0, far=0.0, side=None)
    totals = [NOTHING] * len(outside)
    for rng, size in _chunks(pairs, "fixed", kind.name, sd):
        worse, better = kind.draw(rng, size, sd)
        for place, distance in enumerate(outside):
            totals[place] += _rates(worse + distance * sd, better, question, cap)
    return tuple(totals)


def one_sample_trial(kind: Noise, sd: float, outside: Sequence[float], cases: int) -> tuple[Rates, ...]:
    """Judge one sample of launches whose median lies `outside` its limit by so many sds."""
    totals = [NOTHING] * len(outside)
    for rng, size in _chunks(cases, "one sample", kind.name, sd):
        values, _ = kind.draw(rng, size, sd)
        centre = np.median(values)
        for place, distance in enumerate(outside):
            codes, used = judge_one_sample_many(values - centre + distance * sd, 0.0, SIDES)
            totals[place] += Rates(
                size, int((codes == FAIL).sum()), int((codes == PASS).sum()), int(used.sum())
            )
    return tuple(totals)


def stall_trial(
    base: float, new: float, pairs: int, *, steps: int = stalls.STALL_STEPS, burst: float = 0.0
) -> Rates:
    """Judge stall shares of launches of `steps` steps, with independent stalls of probability `base` and `new`.

    With `burst`, each launch has its own probability: the mean times a log-normal factor of that sd.
    """
    question = stalls.question_for()
    total = NOTHING
    for rng, size in _chunks(pairs, "stalls", base, new, steps, burst):
        own = np.exp(burst * rng.standard_normal((2, size, SIDES)) - burst**2 / 2)
        shares = [
            rng.binomial(steps, np.minimum(1.0, mean * factor)) / steps
            for mean, factor in zip((new, base), own, strict=True)
        ]
        total += _rates(shares[0], shares[1], question, SIDES)
    return total


@dataclass(frozen=True)
class FloorRates:
    """Shares of floors that miss once, and that miss again on another node: a `fail`; and the mean tolerance."""

    missed: float
    failed: float
    tolerance: float


def floor_trial(
    occasions: int,
    loss: float,
    cases: int,
    *,
    date_sd: float = 0.005,
    node_sd: float = 0.01,
    launch_sd: float = 0.003,
    one_node: bool = False,
) -> FloorRates:
    """Judge floors of a system whose nodes and dates differ, when it has lost `loss` of its rate.

    Each occasion has a node and a date of its own (`one_node`: one node for all, and the measurement is
    elsewhere). The measurement and its confirmation share a date and not a node. `launch_sd` is the sd
    of the median of an occasion's launches.
    """
    freedom = occasions - 1 + PRIOR_FREEDOM
    missed = failed = 0
    tolerances = 0.0
    for rng, size in _chunks(cases, "floor", occasions, one_node, date_sd, node_sd):
        nodes = node_sd * rng.standard_normal((size, 1 if one_node else occasions))
        noise_of = date_sd * rng.standard_normal((size, occasions)) + launch_sd * rng.standard_normal(
            (size, occasions)
        )
        rates = nodes + noise_of
        between = rates.var(axis=1, ddof=1) if occasions > 1 else np.zeros(size)
        spread = np.sqrt((PRIOR_FREEDOM * PRIOR_SPREAD**2 + (occasions - 1) * between) / freedom)
        reach = student_t_quantile(LEVEL, freedom) * spread * math.sqrt(1.0 + 1.0 / occasions)
        tolerance = np.maximum(LEAST_TOLERANCE, reach)
        bound = np.median(rates, axis=1) - tolerance
        date = date_sd * rng.standard_normal((size, 1))
        now = date + node_sd * rng.standard_normal((size, 2)) + launch_sd * rng.standard_normal((size, 2))
        misses = now + math.log1p(-loss) < bound[:, None]
        missed += int(misses[:, 0].sum())
        failed += int(misses.all(axis=1).sum())
        tolerances += float(tolerance.sum())
    return FloorRates(missed / cases, failed / cases, tolerances / cases)
