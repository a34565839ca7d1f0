from __future__ import annotations

import sys

import pytest

from perf.faults.selfcheck.carry import Where
from perf.faults.selfcheck.results import Clean
from perf.faults.selfcheck.stream import FILE, Beside
from perf.launch.stack import Stack
from perf.records import Run


@pytest.fixture
def beside(tmp_path):
    """Return a function that makes the process of clean judgements run a piece of Python instead."""

    def make(code):
        found = Beside(Run(tmp_path), Where(Stack("own", "p", {}), "cpu", tmp_path, 2, "/c"), 3, None)
        found._command = [sys.executable, "-c", code]
        return found

    return make


def test_what_it_has_found_can_be_read_while_it_runs(beside, tmp_path):
    """Before its first judgement that is nothing."""
    with beside("pass") as stream:
        assert [] == stream.found()
        one = Clean(1, "loader_share", "pass", 5, 30.0, ["it is 20 %"])
        Run(tmp_path).append(FILE, one)
        stream.wait()
        assert [one] == stream.found()


def test_it_does_not_outlive_what_it_is_beside(beside):
    """Whoever leaves early ends it."""
    with beside("import time; time.sleep(600)") as stream:
        process = stream._process
    assert process.poll() is not None
