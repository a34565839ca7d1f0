"""The command line of comparisons."""

from __future__ import annotations

import os

import pytest

from perf.comparing.__main__ import Wish, WrongWords, command, main, read


def test_two_stacks_come_first_and_the_rest_is_pytests():
    """Options keep their order and their words."""
    assert Wish(("old", "new"), False, ("--margin", "2%", "-k", "a b")) == read(
        ["old", "new", "--margin", "2%", "-k", "a b"]
    )
    assert Wish(("a", "b", "c"), True, ("-q",)) == read(["--bisect", "a", "b", "c", "-q"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["old"], "two stacks are compared, the old one first; got 1"),
        (["a", "b", "c"], "got 3"),
        (["--bisect", "a", "b"], "three stacks or more"),
        (["--bisect", "a", "b", "a"], "stands twice"),
        (["a", "b", "--bisect"], "--bisect comes first"),
    ],
)
def test_other_numbers_of_stacks_are_told(words, message, capsys):
    """With pytest's status for a wrong command line, before anything is started."""
    with pytest.raises(WrongWords, match=message):
        read(words)
    assert 4 == main(words)
    assert message in capsys.readouterr().err


def test_the_command_compares_here_or_as_jobs():
    """A named site submits; a profile that was asked for stays."""
    here = command("o", "n", ["--profile=compare-smoke"])
    assert ["-m", "pytest", "perf", "--against=o", "--stack=n", "--profile=compare-smoke"] == here[-6:]
    site = command("o", "n", ["--site=s.toml"])
    assert "perf.cluster" in site
    assert "--profile=compare" in site


@pytest.mark.parametrize(
    ("new", "words"), [("/s/python", "note: both are the same stack, /s/python"), ("/t", "")]
)
def test_a_stack_against_itself_is_said_and_measured(new, words, capsys, monkeypatch):
    """It tells how much is noise; who mistyped a name learns of it before the launches."""
    started = []
    monkeypatch.setattr(os, "execv", lambda program, given: started.append(given) or 0)

    assert 0 == main(["/s/python", new])
    (found,) = started
    assert {"--against=/s/python", f"--stack={new}"} <= set(found)
    err = capsys.readouterr().err
    assert err.startswith(words)
    assert bool(words) == bool(err)
