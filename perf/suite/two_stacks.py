"""What a comparison of two stacks asks: its sides, its margin, its words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perf.catalogue import SIDES, Group, Member
from perf.limits import COMPARED, QUOTIENT, STEP_MARGIN, Override, overridden
from perf.suite.question import Question
from perf.suite.source import Measurement
from perf.verdict.known import Library
from perf.verdict.outcome import Judgement, Verdict
from perf.verdict.same_work import less_work

__all__ = [
    "NEW",
    "OLD",
    "Comparison",
    "Explain",
    "is_slower",
    "judged_members",
    "margin_of",
    "moved",
    "question_of",
    "split",
    "unlike_work",
]

OLD, NEW = SIDES

QUOTIENTS = ("loader_share", "scaling")
"""Metrics that are made of two step times."""

WORDS = {
    "loader_share": "loader's share of a step of",
    "scaling": "step on several devices ÷ step on one, of",
}

Explain = Callable[[str, str, Group, Judgement], tuple[str, ...]]
"""Takes test, metric, group and judgement; returns sentences that say why."""


class Comparison(Protocol):
    """A rule for two sides measured here, such as `perf.verdict.comparison.compare`."""

    def __call__(self, new: Sequence[float], base: Sequence[float], *, margin: float, cap: int) -> Judgement:
        """Judge the new side against the old one."""


def split(group: Group, sides: Sequence[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Return the measurements of the old and of the new stack, each in the order of the group's members."""
    by_id = {side.member.id: side for side in sides}
    old, new = ([by_id[member.id] for member in group.of_side(side)] for side in SIDES)
    return old, new


def unlike_work(group: Group, sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return why the two stacks did not do the same work; none where they did."""
    old, new = split(group, sides)
    return tuple(
        reason
        for mine, theirs in zip(old, new, strict=True)
        for reason in less_work(mine.launches, theirs.launches)
    )


def judged_members(group: Group, metric: str) -> tuple[Member, Member]:
    """Return the member of each stack, the old one first, that a question is about.

    The last one; of a loader's share the first, which trains on what the loader brings.
    """
    place = 0 if metric == "loader_share" else -1
    return group.of_side(OLD)[place], group.of_side(NEW)[place]


def question_of(group: Group, metric: str, margin: float, *, share: bool) -> Question:
    """Return the question, in the name of the new stack's member that it is about."""
    old, new = judged_members(group, metric)
    sentence = f"{WORDS.get(metric, f'{metric} of')} {new.variant.id}, new stack {'-' if share else '÷'} old"
    limit = margin if share else 1.0 + margin
    return Question(metric, "share" if share else "ratio", new, old, limit, sentence, change=True)


def margin_of(
    metric: str, group: Group, asked: float | None, library: Library, overrides: Mapping[str, Override]
) -> float:
    """Return by how much the new stack may be worse: what was asked for, the reference's, or the metric's own."""
    if metric == STEP_MARGIN.metric:
        known = library.margin(group.members[0].variant.id, "throughput")[1]
        return asked or known or overridden(STEP_MARGIN, overrides).value
    if metric in QUOTIENTS and asked:
        return asked * QUOTIENT
    return overridden(COMPARED[metric], overrides).value


def moved(judgement: Judgement) -> bool:
    """Say whether a comparison shows a change: it failed, or its upper bound lies below no change at all."""
    if judgement.verdict is Verdict.FAIL:
        return True
    return judgement.verdict is Verdict.PASS and judgement.high < _no_change(judgement)


def is_slower(judgement: Judgement) -> bool:
    """Say whether the new side of a comparison came out slower, by however little."""
    return judgement.estimate > _no_change(judgement)


def _no_change(judgement: Judgement) -> float:
    """Return what a quotient, or a difference, of equal sides is: a difference's limit lies below 1."""
    return 0.0 if judgement.limit < 1.0 else 1.0
