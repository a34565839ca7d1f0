from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from perf.verdict import comparison, stalls
from perf.verdict.decide import Question, decide
from perf.verdict.looks import grossly_different
from perf.verdict.noise import KINDS
from perf.verdict.one_sample import judge_one_sample
from perf.verdict.outcome import Verdict
from perf.verdict.vectorized import (
    FAIL,
    OPEN,
    PASS,
    decide_many,
    grossly_different_many,
    judge_one_sample_many,
)

CODES = {Verdict.PASS: PASS, Verdict.INCONCLUSIVE: OPEN, Verdict.FAIL: FAIL}
CASES = 24
QUESTIONS = {
    "A/B": comparison.question_for(0.02),
    "limit": Question(zero=0.01, far=0.01, side=None),
    "stalls": stalls.question_for(),
}


@functools.cache
def cases() -> tuple[np.ndarray, np.ndarray]:
    """Return some thousand pairs of sides: every noise, several spreads and shifts, half on a grid with ties."""
    rng = np.random.default_rng(7)
    new, base = [], []
    for kind in KINDS:
        for sd in (0.002, 0.008, 0.03):
            for shift in (-0.02, 0.0, 0.01, 0.02, 0.05):
                worse, better = kind.draw(rng, CASES, sd)
                worse = worse + shift
                half = CASES // 2
                # A grid of 1/400, as shares of 400 steps have it; half the margin and the margin lie on it.
                worse[:half], better[:half] = (
                    np.round(worse[:half] * 400) / 400,
                    np.round(better[:half] * 400) / 400,
                )
                new.append(worse)
                base.append(better)
    return np.concatenate(new), np.concatenate(base)


@pytest.mark.parametrize(
    ("name", "cap"), [("A/B", 16), ("A/B", 7), ("limit", 16), ("limit", 10), ("stalls", 16)]
)
def test_the_vectorized_rules_equal_the_scalar_rules(name, cap):
    """On thousands of cases, ties included, both forms give the same verdict at the same look."""
    new, base = cases()
    codes, used = decide_many(new, base, QUESTIONS[name], cap)
    step = 1 if name == "A/B" and cap == 16 else 4
    seen = set()
    for row in range(0, len(new), step):
        scalar = decide(new[row].tolist(), base[row].tolist(), QUESTIONS[name], cap)
        assert scalar.verdict is not None
        assert (CODES[scalar.verdict], scalar.launches) == (codes[row], used[row])
        seen.add((scalar.verdict, scalar.launches))
    # Every way out of the looks was taken, so the comparison is of all of them.
    assert {verdict for verdict, _ in seen} == set(CODES)
    assert max(launches for _, launches in seen) == cap


def test_a_cap_below_the_first_look_decides_nothing():
    """With fewer than 5 launches affordable every case stays open."""
    new, base = cases()
    codes, used = decide_many(new[:50] + 1.0, base[:50], QUESTIONS["A/B"], 4)
    assert set() == set(codes.tolist()) - {int(OPEN)}
    assert 0 == used.sum()


def test_one_sample_equals_the_scalar_rule():
    """The one-sample rule gives the same verdict at the same look in both forms."""
    values, _ = cases()
    values = values[::2]
    codes, used = judge_one_sample_many(values, math.log(1.01), 16)
    seen = set()
    for row, logs in enumerate(values):
        scalar = judge_one_sample([math.exp(value) for value in logs], limit=1.01, cap=16)
        assert scalar.verdict is not None
        assert (CODES[scalar.verdict], scalar.launches) == (codes[row], used[row])
        seen.add(scalar.verdict)
    assert set(CODES) == seen


def test_gross_differences_equal_the_scalar_rule():
    """Row by row, both forms see the same gross differences."""
    new, base = cases()
    new, base = new[::3, :7] + 0.03, base[::3, :7]
    many = grossly_different_many(new, base, 0.01)
    one = [grossly_different(x, y, 0.01) for x, y in zip(new.tolist(), base.tolist(), strict=True)]
    assert one == many.tolist()
    assert 0 < sum(one) < len(one)
