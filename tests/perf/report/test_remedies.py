from __future__ import annotations

import pytest

from perf.limits import DDP_OVERHEAD, LOADER_SHARE, WEAK_SCALING
from perf.report.remedies import for_failure, for_verdict
from perf.verdict.outcome import Verdict


@pytest.mark.parametrize("limit", [LOADER_SHARE, DDP_OVERHEAD["cuda"], WEAK_SCALING["cuda"]])
def test_a_metric_that_failed_has_its_own_remedy(limit):
    """It differs from what is said of any other failed metric."""
    assert for_verdict("fail", limit.metric) != for_verdict("fail", "another metric")


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASS])
def test_every_verdict_but_a_pass_says_what_to_do(verdict):
    """One sentence on one line."""
    found = for_verdict(verdict.value, "metric")
    assert found.endswith(".")
    assert "\n" not in found
    assert "  " not in found


def test_a_pass_needs_nothing():
    """Nothing is to be done about it."""
    assert "" == for_verdict("pass", "loader_share")


def test_ways_to_die_are_told_apart():
    """Signals, the time limit and memory have remedies of their own; anything else points at the log."""
    statuses = [
        "killed by signal 9 (SIGKILL)",
        "killed by signal 7 (SIGBUS)",
        "ran past its time limit of 60 s",
        "exit status 3",
    ]
    assert 4 == len({for_failure(status) for status in statuses})
    assert "log" in for_failure("exit status 3")
