from __future__ import annotations

import re

import pytest

from perf.catalogue import groups
from perf.limits import LIMITS, RESIDENT_SHARE, RUNG, TUNED


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.metric}-{limit.value}")
def test_a_limit_says_where_its_number_comes_from(limit):
    """Each limit has a unit and a sentence with at least one figure that somebody measured."""
    assert limit.unit in {"ratio", "share", "margin"}
    assert limit.value > 0
    assert re.search(r"\d", limit.why)
    assert limit.why.endswith(".")


@pytest.mark.parametrize(
    ("question", "limits"),
    [("ladder", RUNG), ("mixed", RUNG), ("overlap", RUNG), ("tuned", TUNED), ("tuned", RESIDENT_SHARE)],
)
def test_each_network_of_a_ladder_has_a_limit(question, limits):
    """A limit that is a workload's own is looked up by its name while the test runs, on a GPU that is paid for."""
    assert {member.variant.workload for group in groups(question) for member in group.members} <= set(limits)
