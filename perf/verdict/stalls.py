"""Stalls: steps that take far longer than their launch's median, which the median can't see.

Slow steps that rise from 1.5 to 6 % of all (a fifth more time) move the median in 2.5 % of judgements;
the share of slow steps sees it every time. Launches are the unit here too: one share a launch, the
same looks, margin one point. Fisher's test on pooled steps would alarm in 3.7 % at a nominal 1 %.
Where stalls come in bursts, in some launches and not in others, the shares spread and power drops.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perf.verdict.decide import Decision, Question, decide
from perf.verdict.detectable import answering_launches, detectable_change
from perf.verdict.inputs import check_cap, finite_values
from perf.verdict.looks import FAIL_LOOKS, FIRST_LOOK
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.words import percent, points

__all__ = ["STALL_FACTOR", "STALL_MARGIN", "STALL_STEPS", "compare_stalls", "question_for", "stall_share"]

STALL_FACTOR = 1.5
"""A step is slow above this many medians of its launch: far beyond the few per cent by which steps differ."""

STALL_MARGIN = 0.01
"""One point: one slow step in a hundred more."""

STALL_STEPS = 400
"""Steps a launch: a rise from 0 to 1 % is seen 99.5 % of the time with 400, 5 % of the time with 100."""


def stall_share(step_seconds: Sequence[float], *, least_steps: int = STALL_STEPS) -> float:
    """Return the share of steps above 1.5 x the median of their launch.

    Parameters
    ----------
    step_seconds
        Time of each step of one launch's window, in seconds.
    least_steps
        Steps that are needed for the share to mean anything.

    Raises
    ------
    ValueError
        If there are fewer steps, or a step time is not positive and finite.
    """
    steps = finite_values(step_seconds, "the steps")
    if len(steps) < max(1, least_steps):
        raise ValueError(
            f"a stall share needs a window of {max(1, least_steps)} steps, this launch has {len(steps)}"
        )
    if min(steps) <= 0.0:
        raise ValueError(f"a step time must be positive, got {min(steps)!r} s")
    threshold = STALL_FACTOR * statistics.median(steps)
    return sum(step > threshold for step in steps) / len(steps)


def compare_stalls(
    new: Sequence[float], base: Sequence[float], *, margin: float = STALL_MARGIN, cap: int
) -> Judgement:
    """Judge the new side's stall shares against the old side's.

    Parameters
    ----------
    new, base
        Stall share of each launch (0 to 1), in launch order.
    margin
        Rise that must not pass, in share: 0.01 is one point.
    cap
        Launches a side that the profile affords, as in ``perf.verdict.comparison.compare``.

    Returns
    -------
    Judgement
        `estimate`, `low`, `high`, `limit` and `detectable` are differences of shares (0.01 = one point).

    Raises
    ------
    ValueError
        If a share is not between 0 and 1, or `margin` or `cap` is not positive.
    """
    question = question_for(margin)
    for side, shares in (("new", new), ("old", base)):
        if any(not 0.0 <= share <= 1.0 for share in finite_values(shares, f"the {side} side")):
            raise ValueError(
                f"a stall share lies between 0 and 1; the {side} side has {min(shares)!r} to {max(shares)!r}"
            )
    decision = decide(list(new), list(base), question, check_cap(cap))
    return Judgement(
        verdict=decision.verdict,
        estimate=decision.estimate,
        low=decision.low,
        high=decision.high,
        limit=margin,
        launches=decision.launches,
        detectable=detectable_change(decision.spread, decision.launches, margin=margin, cap=cap),
        reasons=_reasons(decision, question, cap),
        wants=decision.wants,
    )


def question_for(margin: float = STALL_MARGIN) -> Question:
    """Return what is asked of differences of stall shares.

    Raises
    ------
    ValueError
        If `margin` is not positive and finite.
    """
    if not (math.isfinite(margin) and margin > 0.0):
        raise ValueError(f"the margin is a rise of the share above 0 (0.01 for one point), got {margin!r}")
    return Question(zero=0.0, far=margin, side=margin / 2.0)


def _reasons(decision: Decision, question: Question, cap: int) -> tuple[str, ...]:
    n, margin = decision.launches, question.far
    if decision.verdict is None:
        return (f"Undecided: {n} launches a side were read, the next look needs {decision.wants}.",)
    told = f"The share of slow steps changed by {points(decision.estimate)}"
    if decision.verdict is Verdict.PASS:
        return (
            (
                f"{told}; a rise of {points(margin)} is excluded (upper bound {points(decision.high)}, {n} "
                "launches a side)."
            ),
        )
    if decision.verdict is Verdict.FAIL:
        how = (
            "all new launches lie far above all old ones"
            if decision.gross
            else "the lower bound is above no change"
        )
        return (
            (
                f"{told}: {how} (at least {points(decision.low)}, {n} launches a side). The median step "
                "doesn't show it."
            ),
        )
    if cap < FIRST_LOOK:
        return (
            f"This profile affords {cap} launches a side; nothing is decided with fewer than {FIRST_LOOK}.",
        )
    answer = answering_launches(
        decision.estimate, decision.spread, n, zero=question.zero, far=question.far, side=question.side
    )
    answer = 7 if decision.gross else answer
    able = "neither exclude no change nor" if n in FAIL_LOOKS else "don't exclude"
    first = (
        f"{told} ({points(decision.low)} to {points(decision.high)}): {n} launches a side {able} a "
        f"rise of {points(margin)}."
    )
    if answer is not None:
        return first, f"About {answer} launches a side would answer; this profile affords {cap}."
    return first, (
        f"More launches are not likely to answer: the share differs by {percent(decision.spread)} "
        "(standard deviation) from "
        "launch to launch, so the stalls come in bursts."
    )
