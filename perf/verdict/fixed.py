"""Fixed limits: a ratio of step times, a share of the loader, an efficiency.

The same looks as in an A/B, on log ratio - log limit, without the rule of half the margin: `pass` if the
upper bound is inside, `fail` if the lower bound is outside, 16 launches a side whenever 10 leave it
open. On the limit itself the answer is `inconclusive`, so put a limit at least two launch-level
standard deviations away from the healthy value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perf.verdict.decide import Decision, Question, decide
from perf.verdict.detectable import answering_launches, detectable_change
from perf.verdict.inputs import check_cap, positive_logs
from perf.verdict.looks import FAIL_LOOKS, FIRST_LOOK, LOOKS
from perf.verdict.one_sample import judge_one_sample
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.words import percent

__all__ = ["judge_at_least", "judge_one_sample", "judge_ratio", "judge_share"]


@dataclass(frozen=True)
class _Scale:
    """How log ratios (larger is worse) are told: value, text, and the detectable excess at the limit."""

    value: Callable[[float], float]
    text: Callable[[float], str]
    excess: Callable[[float], float]
    inside: str
    outside: str


def judge_ratio(
    numerator: Sequence[float], denominator: Sequence[float], *, limit: float, cap: int
) -> Judgement:
    """Judge ``numerator / denominator <= limit`` of step times.

    Parameters
    ----------
    numerator, denominator
        Median step time of each launch in seconds, in launch order.
    limit
        Largest ratio that is allowed, for example 1.10.
    cap
        Launches a side that the profile affords; with fewer than 5 the answer is `inconclusive`.

    Returns
    -------
    Judgement
        In ratios; `detectable` is the relative excess over the limit that would have failed.

    Raises
    ------
    ValueError
        If a launch value or the limit is not positive and finite, or `cap` is below 1.
    """
    _check_limit(limit, limit > 0.0, "a ratio's limit is a positive number")
    scale = _Scale(math.exp, lambda ratio: f"{ratio:.3f}", math.expm1, "below", "above")
    worse = positive_logs(numerator, "the numerator", "s")
    better = positive_logs(denominator, "the denominator", "s")
    return _judge(worse, better, math.log(limit), limit, cap, scale)


def judge_share(synthetic: Sequence[float], full: Sequence[float], *, limit: float, cap: int) -> Judgement:
    """Judge the loader's share, ``1 - T_synthetic / T_full <= limit``.

    Parameters
    ----------
    synthetic, full
        Median step time of each launch in seconds, in launch order: batches that already lie on the
        device, and the real loader.
    limit
        Largest share that is allowed, below 1; 0.10 for 10 %.
    cap
        As in `judge_ratio`.

    Returns
    -------
    Judgement
        In shares, not clipped: slightly negative is possible. `detectable` is in points of share above the limit.

    Raises
    ------
    ValueError
        If a launch value is not positive and finite, the limit is 1 or more, or `cap` is below 1.
    """
    _check_limit(limit, limit < 1.0, "a share's limit is a number below 1")
    scale = _Scale(
        lambda d: -math.expm1(-d),
        percent,
        lambda d: -(1.0 - limit) * math.expm1(-d),
        "below",
        "above",
    )
    worse = positive_logs(full, "the full mode", "s")
    better = positive_logs(synthetic, "the synthetic mode", "s")
    return _judge(worse, better, -math.log1p(-limit), limit, cap, scale)


def judge_at_least(
    numerator: Sequence[float], denominator: Sequence[float], *, limit: float, cap: int
) -> Judgement:
    """Judge ``numerator / denominator >= limit``, for example an efficiency.

    Parameters
    ----------
    numerator, denominator
        Launch values, positive, in launch order. Scaling efficiency: step time on one GPU over step time on
        N (weak), or samples per second per GPU on N over that on one.
    limit
        Smallest ratio that is allowed, for example 0.85.
    cap
        As in `judge_ratio`.

    Returns
    -------
    Judgement
        In ratios; `detectable` is the relative loss below the limit that would have failed.

    Raises
    ------
    ValueError
        If a launch value or the limit is not positive and finite, or `cap` is below 1.
    """
    _check_limit(limit, limit > 0.0, "an efficiency's limit is a positive number")
    scale = _Scale(
        lambda d: math.exp(-d),
        lambda ratio: f"{ratio:.3f}",
        lambda d: -math.expm1(-d),
        "above",
        "below",
    )
    worse = positive_logs(denominator, "the denominator")
    better = positive_logs(numerator, "the numerator")
    return _judge(worse, better, -math.log(limit), limit, cap, scale)


def _check_limit(limit: float, holds: bool, expected: str) -> None:
    if not (math.isfinite(limit) and holds):
        raise ValueError(f"{expected}, got {limit!r}")


def _judge(
    worse: list[float],
    better: list[float],
    log_limit: float,
    limit: float,
    cap: int,
    scale: _Scale,
) -> Judgement:
    question = Question(zero=log_limit, far=log_limit, side=None)
    decision = decide(worse, better, question, check_cap(cap))
    seen = detectable_change(decision.spread, decision.launches, margin=0.0, cap=cap)
    low, high = sorted((scale.value(decision.low), scale.value(decision.high)))
    return Judgement(
        verdict=decision.verdict,
        estimate=scale.value(decision.estimate),
        low=low,
        high=high,
        limit=limit,
        launches=decision.launches,
        detectable=None if seen is None else scale.excess(seen),
        reasons=_reasons(decision, question, limit, cap, scale),
        wants=decision.wants,
    )


def _reasons(
    decision: Decision, question: Question, limit: float, cap: int, scale: _Scale
) -> tuple[str, ...]:
    n = decision.launches
    if decision.verdict is None:
        have = "no launch" if n == 0 else f"{n} launches a side" if n > 1 else "1 launch a side"
        return (f"Undecided with {have}: the next look needs {decision.wants} a side.",)
    if decision.verdict is Verdict.INCONCLUSIVE:
        return _inconclusive(decision, question, limit, cap, scale)
    nearest = scale.text(scale.value(decision.low if decision.verdict is Verdict.FAIL else decision.high))
    told, limit_told = scale.text(scale.value(decision.estimate)), scale.text(limit)
    if decision.verdict is Verdict.FAIL and decision.gross:
        return (
            (
                f"Every pair of the {n} launches a side is {scale.outside} the limit of {limit_told} (the "
                f"nearest at {nearest}), "
                f"by more than either side's own range; the estimate is {told}."
            ),
        )
    if decision.verdict is Verdict.FAIL:
        return (
            (
                f"It is {told}, {scale.outside} the limit of {limit_told}; even the bound nearest to the "
                "limit over "
                f"{n} launches a side, {nearest}, is {scale.outside} it."
            ),
        )
    return (
        (
            f"It is {told}, {scale.inside} the limit of {limit_told}; the bound nearest to the limit over "
            f"{n} launches a side, {nearest}, is {scale.inside} it too."
        ),
    )


def _inconclusive(
    decision: Decision, question: Question, limit: float, cap: int, scale: _Scale
) -> tuple[str, ...]:
    if cap < FIRST_LOOK:
        return (
            (
                f"This profile affords {cap} launch{'' if cap == 1 else 'es'} a side; nothing is decided "
                "with fewer "
                f"than {FIRST_LOOK}, and a broken limit is shown by 10 (or by 7 if it is gross)."
            ),
        )
    n = decision.launches
    if decision.gross:
        return (
            (
                f"All {n} launches a side are clearly {scale.outside} the limit of {scale.text(limit)}, "
                "but a fail needs more "
                "launches than this profile affords: 7 a side would answer."
            ),
        )
    low, high = sorted((scale.value(decision.low), scale.value(decision.high)))
    told = f"The estimate is {scale.text(scale.value(decision.estimate))}, the limit {scale.text(limit)}."
    if n in FAIL_LOOKS:
        first = (
            f"{told} The bounds over {n} launches a side, {scale.text(low)} to {scale.text(high)}, "
            "lie on both sides of the limit."
        )
    else:
        first = (
            f"{told} {n} launches a side can only show that the limit is kept, and don't: the bound that "
            "must lie "
            f"{scale.inside} it is {scale.text(scale.value(decision.high))}."
        )
    answer = answering_launches(
        decision.estimate,
        decision.spread,
        n,
        zero=question.zero,
        far=question.far,
        side=None,
    )
    if answer is not None:
        return first, (
            f"About {answer} launches a side would answer, if estimate and spread stay as they are; "
            f"this profile affords {cap}."
        )
    return first, (
        f"No number of launches up to {LOOKS[-1].launches} a side is likely to answer: the estimate lies "
        "too close to the "
        f"limit for launch medians that spread by {percent(decision.spread)} (standard deviation). A "
        "limit should lie at "
        "least two of these away from the healthy value."
    )
