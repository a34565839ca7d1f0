"""Two stacks' shares held against each other: how much more of a step the new one spends waiting. Pure.

The looks of `perf.verdict.looks` on differences of shares, one share a launch: the same levels as for step times.
"""

from __future__ import annotations

from collections.abc import Sequence

from perf.verdict.decide import Question, decide
from perf.verdict.detectable import detectable_change
from perf.verdict.inputs import check_cap, finite_values
from perf.verdict.looks import FIRST_LOOK
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.words import points

__all__ = ["compare_shares"]


def compare_shares(new: Sequence[float], base: Sequence[float], *, margin: float, cap: int) -> Judgement:
    """Judge the new side's shares against the old side's.

    Parameters
    ----------
    new, base
        One share a launch, in launch order; larger is worse. A loader's share may come out slightly below 0.
    margin
        Rise that must not pass, in share: 0.02 is two points.
    cap
        Launches a side that the profile affords, as in ``perf.verdict.comparison.compare``.

    Returns
    -------
    Judgement
        `estimate`, `low`, `high`, `limit` and `detectable` are differences of shares.

    Raises
    ------
    ValueError
        If a share is not finite, or `margin` or `cap` is not positive.
    """
    if not margin > 0.0:
        raise ValueError(f"the margin is a rise of the share above 0 (0.02 for two points), got {margin!r}")
    question = Question(zero=0.0, far=margin, side=margin / 2.0)
    sides = [finite_values(list(of), f"the {name} side") for name, of in (("new", new), ("old", base))]
    decision = decide(list(sides[0]), list(sides[1]), question, check_cap(cap))
    n = decision.launches
    told = f"The share changed by {points(decision.estimate)} ({points(decision.low)} to {points(decision.high)})"
    ends = {
        None: f"Undecided with {n} launches a side: the next look needs {decision.wants}.",
        Verdict.PASS: f"{told}; a rise of {points(margin)} is excluded with {n} launches a side.",
        Verdict.FAIL: f"{told}: it rose, with {n} launches a side.",
    }
    open_end = f"{told}: {n} launches a side neither exclude a rise of {points(margin)} nor show one."
    if cap < FIRST_LOOK:
        open_end = (
            f"This profile affords {cap} launch{'' if cap == 1 else 'es'} a side; nothing is decided with fewer than "
            f"{FIRST_LOOK}."
        )
    return Judgement(
        verdict=decision.verdict,
        estimate=decision.estimate,
        low=decision.low,
        high=decision.high,
        limit=margin,
        launches=n,
        detectable=detectable_change(decision.spread, n, margin=margin, cap=cap),
        reasons=(ends.get(decision.verdict, open_end),),
        wants=decision.wants,
    )
