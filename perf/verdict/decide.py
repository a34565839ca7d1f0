"""The walk through the looks: the one place where two sides of launches become a verdict.

Works on values where larger is worse (logarithms of times, or shares). What the numbers mean, and how
they are told, is up to the callers: ``comparison``, ``fixed``, ``stalls``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perf.verdict.detectable import pooled_spread
from perf.verdict.looks import (
    FIRST_LOOK,
    LOOKS,
    Look,
    grossly_different,
    hodges_lehmann,
    kth_largest,
    kth_smallest,
    pairwise_differences,
)
from perf.verdict.outcome import Verdict

__all__ = ["Decision", "Question", "decide"]


@dataclass(frozen=True)
class Question:
    """What is asked of the differences d between two sides, in the units of the values.

    Attributes
    ----------
    zero
        `fail` needs the lower bound above this: no change in an A/B, the limit where there is one.
    far
        `pass` needs the upper bound below this: the margin in an A/B, the limit where there is one.
    side
        Half the margin in an A/B: `fail` needs the estimate at or above it, `pass` below it, and the
        last look is taken only at or above it. None where a fixed limit is judged.
    """

    zero: float
    far: float
    side: float | None

    def failing(self, estimate: float) -> bool:
        """Whether the estimate allows a fail."""
        return self.side is None or estimate >= self.side

    def passing(self, estimate: float) -> bool:
        """Whether the estimate allows a pass."""
        return self.side is None or estimate < self.side


@dataclass(frozen=True)
class Decision:
    """Where the walk ended; the fields are those of `Judgement`, in the units of the values.

    `spread` is the pooled standard deviation of the launches used, nan with fewer than two a side.
    `gross` says that a gross difference decided, or is waiting for its second look.
    """

    verdict: Verdict | None
    estimate: float
    low: float
    high: float
    launches: int
    spread: float
    wants: int = 0
    gross: bool = False


def decide(worse: Sequence[float], better: Sequence[float], question: Question, cap: int) -> Decision:
    """Judge `worse` against `better` by the looks of ``perf.verdict.looks``.

    Each look reads the first launches of both sides only, so launches beyond it never change what it said.

    Parameters
    ----------
    worse, better
        Finite launch values in launch order, larger is worse. They may differ in length: the shorter counts.
    question
        What `fail` and `pass` must show.
    cap
        Launches a side that can be afforded; looks beyond it are not taken.
    """
    have = min(len(worse), len(better))
    if cap < FIRST_LOOK:
        return replace(_see(worse, better, min(have, cap), None), verdict=Verdict.INCONCLUSIVE)
    last = _see(worse, better, min(have, FIRST_LOOK), None)
    for look in LOOKS:
        n = look.launches
        if n > cap or (look.failing_side_only and not question.failing(last.estimate)):
            break
        if look.gross and not last.gross:
            continue
        if have < n:
            return replace(last, wants=n)
        last = _see(worse, better, n, look)
        verdict, gross = _judge_look(worse[:n], better[:n], look, last, question)
        last = replace(last, verdict=verdict, gross=gross)
        if verdict is not None:
            return last
    return replace(last, verdict=Verdict.INCONCLUSIVE)


def _see(worse: Sequence[float], better: Sequence[float], n: int, look: Look | None) -> Decision:
    """Summarize the first n launches a side; without a rank the outermost difference is the bound."""
    if n == 0:
        return Decision(None, math.nan, math.nan, math.nan, 0, math.nan)
    differences = pairwise_differences(worse[:n], better[:n])
    fail_rank = (look.fail_rank if look else None) or 1
    pass_rank = (look.pass_rank if look else None) or 1
    return Decision(
        verdict=None,
        estimate=hodges_lehmann(differences),
        low=kth_smallest(differences, fail_rank),
        high=kth_largest(differences, pass_rank),
        launches=n,
        spread=pooled_spread(worse[:n], better[:n]),
    )


def _judge_look(
    worse: Sequence[float],
    better: Sequence[float],
    look: Look,
    seen: Decision,
    question: Question,
) -> tuple[Verdict | None, bool]:
    """Return what one look says, and whether it saw a gross difference that the next look must confirm."""
    failing = question.failing(seen.estimate)
    if look.gross:
        gross = failing and grossly_different(worse, better, question.zero)
        return (Verdict.FAIL if gross else None), gross
    if look.fail_rank is not None and failing and seen.low > question.zero:
        return Verdict.FAIL, False
    if look.pass_rank is not None and question.passing(seen.estimate) and seen.high < question.far:
        return Verdict.PASS, False
    first = look.launches == FIRST_LOOK
    return None, first and failing and grossly_different(worse, better, question.zero)
