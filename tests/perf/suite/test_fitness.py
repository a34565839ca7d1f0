from __future__ import annotations

import pytest
from launch_records import PAIR_GROUP, record_of

from perf.suite.fitness import replaced_in_words, unsteady_in_words
from perf.suite.source import Measurement

SINGLE = PAIR_GROUP.members[0]


def test_a_launch_that_was_taken_again_is_told_with_its_reason():
    """Launch, member and fact are in the sentence; without a replacement there is none."""
    unfit = record_of(SINGLE, launch="main-0003", valid=False, reasons=["hot"], unfit=["hot"])
    (said,) = replaced_in_words([Measurement(SINGLE, [record_of(SINGLE)], (unfit,))])

    assert f"launch main-0003 of {SINGLE.id} was taken again, the machine was not fit: hot" == said
    assert () == replaced_in_words([Measurement(SINGLE, [record_of(SINGLE)])])


@pytest.mark.parametrize(("drifting", "said"), [(0, False), (2, False), (3, True), (5, True)])
def test_a_side_is_unsteady_with_more_than_half_of_its_launches(drifting, said):
    """Two of five launches that drift are noise; three are the middle one."""
    launches = [record_of(SINGLE, flags=["unsteady"] if i < drifting else []) for i in range(5)]
    words = unsteady_in_words([Measurement(SINGLE, launches)])

    assert said == bool(words)
    assert not words or f"{drifting} of 5 launches of {SINGLE.id}" in words[0]
