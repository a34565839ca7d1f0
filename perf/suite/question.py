"""What a judgement is asked, and how its answer reads. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perf.catalogue import Member
from perf.verdict.outcome import Judgement

__all__ = ["Question", "describe"]


@dataclass(frozen=True)
class Question:
    """What is judged: words for the record and for the person who reads it.

    `floor` says that it is held against a reference, `change` that it is held against another side with a margin:
    what could have been detected is a distance from these then, and not from the limit. `reference` is the median of
    what is known, for the picture.
    """

    metric: str
    unit: str
    variant: Member
    against: Member | None
    limit: float | None
    sentence: str
    floor: bool = False
    reference: float | None = None
    change: bool = False


def describe(question: Question, judgement: Judgement) -> str:
    """Return a judgement in words: what, how much, how sure, and why."""
    text = question.sentence
    if math.isfinite(judgement.estimate):
        text += f": {judgement.estimate:.4g} {question.unit}"
        low, high = judgement.bounds
        if low is not None and high is not None:
            text += f" ({low:.4g} to {high:.4g})"
    if question.limit is not None:
        text += f", limit {question.limit:.4g}"
    text += f"; {judgement.launches} launch{'' if judgement.launches == 1 else 'es'}"
    text += " a side" if question.against else ""
    if judgement.detectable is not None and question.limit is not None:
        size = f"{100 * judgement.detectable:.2g} {'points' if question.unit == 'share' else '%'}"
        text += (
            f"; a change of {size} from the reference would have been seen"
            if question.floor
            else f"; a change of {size} would have failed"
            if question.change
            else f"; an excess of {size} over the limit would have failed"
        )
    return "; ".join([text, *judgement.reasons])
