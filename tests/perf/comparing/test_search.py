"""The search for the first bad stack, over comparisons that are made up."""

from __future__ import annotations

import pytest

from perf.comparing.search import run

STACKS = ["s0", "s1", "s2", "s3", "s4"]


def searched(statuses: dict[str, int], capsys) -> tuple[int, list[str], str]:
    """Search; returns the exit status, the stacks that were asked about, and what was printed."""
    asked: list[str] = []

    def ask(words):
        asked.append(words[1])
        return statuses[words[1]]

    status = run(STACKS, ["--results", "nowhere"], lambda old, new, rest: [old, new], ask=ask)
    return status, asked, capsys.readouterr().out


def test_the_first_bad_one_is_named(capsys):
    """Three comparisons of four, status 1."""
    status, asked, said = searched({"s4": 1, "s2": 0, "s3": 1}, capsys)
    assert (1, ["s4", "s2", "s3"]) == (status, asked)
    assert "the first bad one is s3; s2 before it is good (3 comparisons)" in said
    assert "not asked" in said


def test_one_comparison_does_where_none_is_bad(capsys):
    """The newest keeps up."""
    assert (0, ["s4"]) == searched({"s4": 0}, capsys)[:2]


@pytest.mark.parametrize(("status", "word"), [(10, "inconclusive"), (11, "invalid"), (12, "unreferenced")])
def test_a_comparison_without_an_answer_ends_it_and_is_said(status, word, capsys):
    """With that comparison's own status, and what is known to be good so far."""
    found, asked, said = searched({"s4": 1, "s2": status}, capsys)
    assert (status, ["s4", "s2"]) == (found, asked)
    assert f"no answer: s2 against s0 was {word}" in said
    assert "up to s0" in said


def test_an_interrupted_comparison_ends_it_with_its_own_status(capsys):
    """2 is no answer about a stack."""
    assert 2 == searched({"s4": 2}, capsys)[0]
