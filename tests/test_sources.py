"""docs/sources.md names tests that exist, and leaves out no row of what a suite after the sources has to show."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
ROWS = 28
WITHOUT_A_PERF_TEST = {4, 5, 6, 27, 28}
"""Accounting, provenance, monitor, launch modes and history are of every run, not of a test of it."""


def functions(folder: str, pattern: str) -> set[str]:
    """Return the names of all test functions below a folder."""
    return {
        node.name
        for path in (ROOT / folder).glob(pattern)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def row_of(number: int) -> str:
    """Return the table's line of a row."""
    found = re.findall(rf"^\| {number} \|.*$", PAGE, re.MULTILINE)
    assert 1 == len(found), f"row {number} stands {len(found)} times on the page"
    return str(found[0])


def test_every_test_that_is_named_exists():
    """A test that was renamed or taken away is found on the page."""
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", PAGE))

    assert len(named) > 30
    assert set() == named - functions("perf", "test_*.py")


@pytest.mark.parametrize("number", range(1, ROWS + 1))
def test_every_row_is_answered(number):
    """By a perf test, or in words by what answers it instead."""
    named = re.findall(r"`(test_[a-z0-9_]+)`", row_of(number))

    assert (number in WITHOUT_A_PERF_TEST) == (not named)
    assert named or "not a perf test" in row_of(number)


@pytest.mark.parametrize("question", range(1, 8))
def test_each_question_of_the_demo_has_a_test(question):
    """The seven questions of source 002."""
    (found,) = re.findall(rf"^\| {question}\. .*$", PAGE, re.MULTILINE)

    assert "`test_" in found


def test_links_lead_somewhere():
    """Pages and measurements that are linked exist."""
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
