from __future__ import annotations

import re

import pytest

from perf.limits import LIMITS


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.metric}-{limit.value}")
def test_a_limit_says_where_its_number_comes_from(limit):
    """Each limit has a unit and a sentence with at least one figure that somebody measured."""
    assert limit.unit in {"ratio", "share", "margin"}
    assert limit.value > 0
    assert re.search(r"\d", limit.why)
    assert limit.why.endswith(".")
