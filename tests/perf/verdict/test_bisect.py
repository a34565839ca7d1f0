"""The first bad one of several stacks."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.bisect import Found, next_to_ask, result
from perf.verdict.outcome import Verdict


def search(count: int, bad_from: int) -> tuple[Found, int]:
    """Search a list in which every stack from a place on is bad; returns what was found and how often was asked."""
    answers: dict[int, Verdict] = {}
    while (place := next_to_ask(count, answers)) is not None:
        answers[place] = Verdict.FAIL if place >= bad_from else Verdict.PASS
    return result(count, answers), len(answers)


@given(st.integers(2, 200), st.data())
def test_the_first_bad_one_is_found_with_few_comparisons(count, data):
    """1 + log2(n - 1), rounded up, whichever it is; and one where none is bad."""
    bad_from = data.draw(st.integers(1, count))
    found, asked = search(count, bad_from)
    if bad_from == count:
        assert (Found(None, 0 if count < 2 else count - 1), 1) == (found, asked)
        return
    assert (bad_from, bad_from - 1) == (found.first_bad, found.last_good)
    assert asked <= 1 + math.ceil(math.log2(max(1, count - 1)))


def test_an_inconclusive_comparison_ends_the_search():
    """What could not be told is not guessed."""
    answers = {4: Verdict.FAIL, 2: Verdict.PASS, 3: Verdict.INCONCLUSIVE}
    assert next_to_ask(5, answers) is None
    assert Found(None, 2, 3) == result(5, answers)
