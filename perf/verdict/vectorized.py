"""The rules of ``decide`` and ``one_sample`` over many cases at once. Needs numpy; only the simulation uses it.

Every number comes from the scalar modules' own tables. tests/perf/verdict/test_vectorized.py holds the
two forms against each other, case by case.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from perf.verdict.decide import Question
from perf.verdict.looks import FIRST_LOOK, LOOKS
from perf.verdict.noise import Values
from perf.verdict.one_sample import FAIL_LEVEL, FAIL_LOOK, ONE_SAMPLE_LOOKS
from perf.verdict.quantiles import student_t_quantile

__all__ = ["FAIL", "OPEN", "PASS", "decide_many", "grossly_different_many", "judge_one_sample_many"]

PASS, OPEN, FAIL = np.int8(-1), np.int8(0), np.int8(1)
"""Codes of the outcomes; OPEN is inconclusive."""

Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]


def decide_many(
    worse: Values, better: Values, question: Question, cap: int
) -> tuple[Codes, NDArray[np.int64]]:
    """Judge every row of `worse` against the same row of `better`.

    Parameters
    ----------
    worse, better
        Shape (cases, launches), launches at least as many as the last look within `cap`.
    question, cap
        As in ``perf.verdict.decide.decide``.

    Returns
    -------
    codes, launches
        Shape (cases,): PASS, OPEN or FAIL, and the launches a side at the deciding look.
    """
    cases = len(worse)
    codes = np.full(cases, OPEN)
    used = np.zeros(cases, dtype=np.int64)
    live = np.arange(cases)
    gross = np.zeros(cases, dtype=bool)
    failing = np.ones(cases, dtype=bool)
    for look in LOOKS:
        n = look.launches
        if n > cap or cap < FIRST_LOOK:
            break
        chosen = (
            gross if look.gross else failing if look.failing_side_only else np.ones(len(live), dtype=bool)
        )
        rows = live[chosen]
        if not len(rows):
            continue
        x, y = worse[rows, :n], better[rows, :n]
        differences = (x[:, :, None] - y[:, None, :]).reshape(len(rows), n * n)
        fails, passes = _sides(differences, question)
        verdict = np.full(len(rows), OPEN)
        if look.gross:
            verdict[fails & grossly_different_many(x, y, question.zero)] = FAIL
        if look.fail_rank is not None:
            # d[k] > zero: at most k - 1 differences at or below it.
            verdict[fails & (np.count_nonzero(differences <= question.zero, axis=1) < look.fail_rank)] = FAIL
        if look.pass_rank is not None:
            within = np.count_nonzero(differences >= question.far, axis=1) < look.pass_rank
            verdict[passes & within & (verdict == OPEN)] = PASS
        codes[rows], used[rows] = verdict, n
        # Rows that skipped this look keep their place; those that took it go on only while open.
        going = np.ones(len(live), dtype=bool)
        going[chosen] = verdict == OPEN
        seen_gross = np.zeros(len(live), dtype=bool)
        if n == FIRST_LOOK:
            seen_gross[chosen] = fails & grossly_different_many(x, y, question.zero)
        failing[chosen] = fails
        live, gross, failing = live[going], seen_gross[going], failing[going]
    return codes, used


def _sides(differences: Values, question: Question) -> tuple[Flags, Flags]:
    """Return whether the estimate allows a fail, and a pass."""
    if question.side is None:
        both = np.ones(len(differences), dtype=bool)
        return both, both
    size = differences.shape[1]
    above = np.count_nonzero(differences >= question.side, axis=1)
    failing: Flags = above > size // 2
    # Of an even number of differences exactly half lie above: only then the mean of the middle two decides.
    split = np.flatnonzero(above * 2 == size)
    if len(split):
        middle = np.partition(differences[split], (size // 2 - 1, size // 2), axis=1)
        failing[split] = (middle[:, size // 2 - 1] + middle[:, size // 2]) / 2 >= question.side
    return failing, ~failing


def grossly_different_many(worse: Values, better: Values, zero: float) -> Flags:
    """Return ``looks.grossly_different`` of each row."""
    gap = worse.min(axis=1) - better.max(axis=1) - zero
    wider = np.maximum(np.ptp(worse, axis=1), np.ptp(better, axis=1))
    gross: Flags = (gap > 0.0) & (gap > wider)
    return gross


def judge_one_sample_many(logs: Values, log_limit: float, cap: int) -> tuple[Codes, NDArray[np.int64]]:
    """Judge every row of launch values (log units, shape (cases, launches)) as ``judge_one_sample`` does."""
    codes = np.full(len(logs), OPEN)
    used = np.zeros(len(logs), dtype=np.int64)
    for n, allowed in ONE_SAMPLE_LOOKS.items():
        if n > cap:
            break
        rows = np.flatnonzero(codes == OPEN)
        x = logs[rows, :n]
        used[rows] = n
        passes = (x >= log_limit).sum(axis=1) <= allowed
        codes[rows[passes]] = PASS
        if n == FAIL_LOOK:
            reach = student_t_quantile(1.0 - FAIL_LEVEL, n - 1) / math.sqrt(n)
            bound = x.mean(axis=1) - reach * x.std(axis=1, ddof=1)
            codes[rows[~passes & (x.min(axis=1) > log_limit) & (bound > log_limit)]] = FAIL
    return codes, used
