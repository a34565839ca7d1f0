"""Which of several stacks in order is the first bad one: a search that ends where a comparison gives no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perf.verdict.outcome import Verdict

__all__ = ["Found", "next_to_ask", "result"]


@dataclass(frozen=True)
class Found:
    """How a search ended.

    Attributes
    ----------
    first_bad
        Place in the list; None where none is bad, or it could not be told.
    last_good
        The place of the newest stack that is known to be good.
    unanswered
        The comparison that gave no answer, where the search had to end at one.
    """

    first_bad: int | None
    last_good: int
    unanswered: int | None = None


def next_to_ask(count: int, answers: Mapping[int, Verdict]) -> int | None:
    """Return the place of the stack to compare with the first one next; None where the search has ended.

    The last is asked first: if it is good nothing is bad, and no other launch is needed. Then the middle of what is
    between the newest good one and the oldest bad one, so that n stacks take 1 + log2(n - 1) comparisons.

    Parameters
    ----------
    count
        Stacks in the list; the first is known to be good.
    answers
        Verdict of each comparison so far, by place. Anything but ``pass`` and ``fail`` ends the search.
    """
    if count < 2:
        raise ValueError(f"a search needs two stacks, got {count}")
    if any(verdict not in (Verdict.PASS, Verdict.FAIL) for verdict in answers.values()):
        return None
    last = count - 1
    if last not in answers:
        return last
    if answers[last] is Verdict.PASS:
        return None
    good, bad = _between(count, answers)
    return None if bad - good == 1 else (good + bad) // 2


def result(count: int, answers: Mapping[int, Verdict]) -> Found:
    """Return what a search that has ended found.

    Raises
    ------
    ValueError
        If it has not ended.
    """
    if next_to_ask(count, answers) is not None:
        raise ValueError("the search has not ended")
    good, bad = _between(count, answers)
    open_places = [place for place, verdict in answers.items() if verdict not in (Verdict.PASS, Verdict.FAIL)]
    if open_places:
        return Found(None, good, open_places[-1])
    return Found(bad if bad < count else None, good)


def _between(count: int, answers: Mapping[int, Verdict]) -> tuple[int, int]:
    """Return the newest good place and the oldest bad one; `count` where none is bad.

    Where several changes make up for each other both orders may occur: what is bad counts from the oldest one on.
    """
    bad = min((place for place, verdict in answers.items() if verdict is Verdict.FAIL), default=count)
    good = max(
        (place for place, verdict in answers.items() if verdict is Verdict.PASS and place < bad), default=0
    )
    return good, bad
