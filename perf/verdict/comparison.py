"""Two sides measured here, interleaved, in one allocation: does the new one keep up with the old one.

The estimate picks the side of half the margin, and a bound must support it. A `fail` costs 2.2e-4 per
judgement whatever the noise; a new side that is slower by exactly the margin passes in at most 5 of
100 judgements. Between no change and the margin either may come out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perf.verdict.decide import Decision, Question, decide
from perf.verdict.detectable import answering_launches, detectable_change
from perf.verdict.inputs import check_cap, positive_logs
from perf.verdict.looks import FAIL_LOOKS, FIRST_LOOK, LOOKS
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.words import change, percent

__all__ = ["compare", "question_for"]


def compare(new: Sequence[float], base: Sequence[float], *, margin: float, cap: int) -> Judgement:
    """Judge the new side's step time against the old side's.

    Parameters
    ----------
    new, base
        Median step time of each launch in seconds, in launch order; new slower is bad. Only the first
        5, 7, 10 or 16 of each side are read, as the looks say, so extra launches change nothing.
    margin
        Relative slowdown that must not pass, 0.02 for 2 %. Calibration keeps it at 3 launch-level
        standard deviations or more.
    cap
        Launches a side that the profile affords. Below 5 nothing is decided; 5 can only pass; 10 and 16
        allow the full rule.

    Returns
    -------
    Judgement
        `estimate`, `low`, `high` and `limit` are ratios new / old of step time; `limit` is 1 + margin.

    Raises
    ------
    ValueError
        If a launch value is not positive and finite, or `margin` or `cap` is not positive.
    """
    question = question_for(margin)
    decision = decide(
        positive_logs(new, "the new side", "s"),
        positive_logs(base, "the old side", "s"),
        question,
        check_cap(cap),
    )
    seen = detectable_change(decision.spread, decision.launches, margin=question.far, cap=cap)
    return Judgement(
        verdict=decision.verdict,
        estimate=math.exp(decision.estimate),
        low=math.exp(decision.low),
        high=math.exp(decision.high),
        limit=1.0 + margin,
        launches=decision.launches,
        detectable=None if seen is None else change(seen),
        reasons=_reasons(decision, question, margin, cap),
        wants=decision.wants,
    )


def question_for(margin: float) -> Question:
    """Return what an A/B asks of differences of log step times: a slowdown of x is log(1 + x) on that scale.

    Raises
    ------
    ValueError
        If `margin` is not positive and finite.
    """
    if not (math.isfinite(margin) and margin > 0.0):
        raise ValueError(f"the margin is a relative slowdown above 0 (0.02 for 2 %), got {margin!r}")
    return Question(zero=0.0, far=math.log1p(margin), side=math.log1p(margin / 2.0))


def _reasons(decision: Decision, question: Question, margin: float, cap: int) -> tuple[str, ...]:
    n = decision.launches
    if decision.verdict is None:
        have = "no launch" if n == 0 else f"{n} launches a side" if n > 1 else "1 launch a side"
        return (f"Undecided with {have}: the next look needs {decision.wants} a side.",)
    estimate, low, high = (
        change(decision.estimate),
        change(decision.low),
        change(decision.high),
    )
    if decision.verdict is Verdict.FAIL and decision.gross:
        return (
            (
                f"All {n} launches of the new side are slower than all {n} of the old one, and the gap of "
                f"{percent(low)} "
                "is wider than either side's own range."
            ),
            f"The new side is slower by {percent(estimate)}.",
        )
    if decision.verdict is Verdict.FAIL:
        return (
            (
                f"The new side is slower by {percent(estimate)}, which is more than half the margin of "
                f"{percent(margin)}; "
                f"even the lower bound over {n} launches a side, {percent(low)}, is above no change."
            ),
        )
    if decision.verdict is Verdict.PASS:
        reasons = [
            (
                f"A slowdown of {percent(margin)} is excluded: the upper bound over {n} launches a side is "
                f"{percent(high)}."
            )
        ]
        if high < 0.0:
            reasons.insert(
                0,
                f"The new side is faster: it takes {percent(-estimate)} less time (at least "
                f"{percent(-high)}).",
            )
        return tuple(reasons)
    return _inconclusive(decision, question, margin, cap)


def _inconclusive(decision: Decision, question: Question, margin: float, cap: int) -> tuple[str, ...]:
    if cap < FIRST_LOOK:
        return (
            (
                f"This profile affords {cap} launch{'' if cap == 1 else 'es'} a side; nothing is decided "
                "with fewer "
                f"than {FIRST_LOOK}, and a slowdown is shown by 10 (or by 7 if it is gross)."
            ),
        )
    n, low, high = decision.launches, change(decision.low), change(decision.high)
    if decision.gross:
        return (
            (
                f"All {n} launches of the new side are slower than all {n} of the old one, by "
                f"{percent(low)} or more, "
                "but a fail needs more launches than this profile affords: 7 a side would answer."
            ),
        )
    told = f"The step time changed by {percent(change(decision.estimate))}."
    if n not in FAIL_LOOKS:
        first = (
            f"{told} {n} launches a side can only exclude a slowdown, and don't exclude one of "
            f"{percent(margin)} "
            f"(upper bound {percent(high)})."
        )
    elif low > 0.0 or high < margin:
        first = (
            f"{told} The estimate and the bounds over {n} launches a side ({percent(low)} to "
            f"{percent(high)}) don't lie on "
            f"the same side of half the margin of {percent(margin)}."
        )
    else:
        first = (
            f"{told} {n} launches a side exclude neither no change (lower bound {percent(low)}) nor a "
            "slowdown of "
            f"{percent(margin)} (upper bound {percent(high)})."
        )
    answer = answering_launches(
        decision.estimate,
        decision.spread,
        n,
        zero=question.zero,
        far=question.far,
        side=question.side,
    )
    return first, _what_would_answer(answer, decision.spread, margin, cap)


def _what_would_answer(answer: int | None, spread: float, margin: float, cap: int) -> str:
    if answer is not None:
        return (
            f"About {answer} launches a side would answer, if estimate and spread stay as they are; "
            f"this profile affords {cap}."
        )
    most = LOOKS[-1].launches
    if spread > margin / 3.0:
        return (
            f"No number of launches up to {most} a side is likely to answer: the launch medians spread by "
            f"{percent(spread)} (standard deviation), and a margin of {percent(margin)} needs "
            f"{percent(margin / 3.0)} or less. "
            "Use a quieter machine, or a wider margin."
        )
    return f"No number of launches up to {most} a side is likely to answer: the change is too close to half the margin."
