"""The stacks of a run, each asked once what it is."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest

from perf.launch.stack import Stack, StackError
from perf.suite import stacks
from perf.suite.stacks import Stacks


@pytest.fixture
def options():
    """A comparison of two Pythons."""
    return SimpleNamespace(stack="new", against="old", site=None, extras=(), cache_dir="/cache")


@pytest.fixture
def run(tmp_path):
    """A run's folder, and what was written as its environment."""
    return SimpleNamespace(
        folder=tmp_path,
        name="run",
        write_environment=lambda found: (tmp_path / "environment.json").write_text(json.dumps(found)),
    )


@pytest.fixture
def asked(monkeypatch):
    """Names of the options whose stacks were asked; either answers once both are."""
    names, both = [], threading.Barrier(2, timeout=10.0)

    def answer(option, path, environ, *, name):
        names.append(name)
        both.wait()
        if option == "none":
            raise StackError(f"{name} none: no such Python")
        return Stack(option, option, {"gpus": [], "torch": option})

    monkeypatch.setattr(stacks, "find_stack", answer)
    monkeypatch.setattr(stacks, "read_cards", lambda stack: [])
    monkeypatch.setattr(stacks, "find_place", lambda site: SimpleNamespace(nodes=1))
    return names


def test_both_stacks_of_a_comparison_are_asked_at_the_same_time(options, run, asked):
    """Each of them once."""
    found = Stacks(options, run)

    assert ("new", "old") == (found.stack.python, found.old_stack.python)
    assert {"--stack", "--against"} == set(asked)
    assert 2 == len(asked)
    assert "old" == found.environment["against"]["torch"]


@pytest.mark.parametrize(("new", "old", "name"), [("new", "none", "--against"), ("none", "old", "--stack")])
def test_a_stack_that_is_none_is_named_whichever_it_is(options, run, asked, new, old, name):
    """The other one's answer is waited for, and hides nothing."""
    options.stack, options.against = new, old
    with pytest.raises(StackError, match=f"{name} none"):
        _ = Stacks(options, run).stack
    assert 2 == len(asked)


def test_a_sites_stacks_are_asked_one_after_the_other(options, run, monkeypatch):
    """Each is a step of the job, and a second one may have to wait for the first."""
    asked = []

    def answer(option, path, environ, *, name):
        asked.append((name, threading.current_thread() is threading.main_thread()))
        return Stack(option, option, {"gpus": []})

    monkeypatch.setattr(stacks, "find_stack", answer)
    monkeypatch.setattr(stacks, "read_cards", lambda stack: [])
    monkeypatch.setattr(stacks, "find_place", lambda site: SimpleNamespace(nodes=1))
    options.site = SimpleNamespace(stacks={}, path="site.toml")
    found = Stacks(options, run)

    assert ("new", "old") == (found.stack.python, found.old_stack.python)
    assert [("--stack", True), ("--against", True)] == asked
