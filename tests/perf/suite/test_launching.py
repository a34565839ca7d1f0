"""How launches are started: what is prepared for them, and that a stack that can't be forked is launched fresh."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest
from launch_records import record_of, spec_of

from perf.catalogue import home
from perf.launch.place import HERE
from perf.launch.server import CannotFork
from perf.launch.stack import Stack
from perf.suite import launching
from perf.suite.launching import Launching
from perf.suite.options import Options

STACK = Stack("mine", "python", {})
MEMBER = home("mnist_cnn-single-1cpu-fp32-native")


class Servers:
    """Servers that can't start, or that are started once."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.started, self.unfit = fails, 0, None

    def serves(self, *ignored) -> bool:
        return self.started > 0

    def start(self, *ignored) -> float:
        if self.fails:
            self.unfit = "no torch"
            raise CannotFork("no torch")
        self.started += 1
        return 7.5

    def why_not(self, stack):
        return self.unfit


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Return launching by fork over such servers, what it notes, and the launchers of its launches."""

    def make(fails: bool, **changes):
        notes, launched = [], []
        options = dataclasses.replace(
            Options("quick", None, "cpu", None, "/cache", tmp_path, (), False, False, (), None),
            **{"launcher": "fork", **changes},
        )
        servers = Servers(fails)
        monkeypatch.setattr(launching, "Servers", lambda *ignored: servers)

        def launch(spec, *ignored, **also):
            launched.append(spec.launcher)
            return record_of(MEMBER)

        monkeypatch.setattr(launching, "launch", launch)
        return Launching(options, HERE, notes.append, tmp_path / "log", ()), servers, notes, launched

    return make


def started(one, alone=contextlib.nullcontext, stack=STACK):
    one.prepare(spec_of(MEMBER), stack, dict, alone)
    one.launch(spec_of(MEMBER), stack, dict, None)


def test_a_server_is_started_once_and_said(make):
    """The first group starts it, on a node that it may keep busy; the next one finds it."""
    one, servers, notes, launched = make(fails=False)
    inside = []

    @contextlib.contextmanager
    def alone():
        inside.append(True)
        yield

    started(one, alone)
    started(one, alone)

    assert (1, ["fork", "fork"], [True]) == (servers.started, launched, inside)
    assert ["a server, which launches of mine are forked from, was ready in 7.5 s"] == notes


@pytest.mark.parametrize(
    ("device", "profile", "expected"),
    [("cuda", "quick", "fork"), ("cpu", "quick", "fresh"), ("cuda", "compare", "fresh")],
)
def test_launches_on_gpus_are_forks_unless_told_otherwise(make, device, profile, expected):
    """Forks were shown to be worth as much on GPUs; but two stacks are compared in how long they take to start."""
    one, _, _, launched = make(fails=False, launcher="", profile=profile)
    spec = dataclasses.replace(spec_of(MEMBER), device=device)
    one.prepare(spec, STACK, dict, contextlib.nullcontext)
    one.launch(spec, STACK, dict, None)

    assert [expected] == launched


def test_a_stack_that_can_t_be_forked_is_launched_fresh_and_that_is_said_once(make):
    """Nothing is silently another way of launching than the one that was asked for."""
    one, _, notes, launched = make(fails=True)
    started(one)
    started(one)

    assert ["fresh", "fresh"] == launched
    assert ["mine can't be launched by fork, so it is launched fresh: no torch"] == notes


@pytest.mark.parametrize(
    ("changes", "stack"), [({"launcher": "fresh"}, STACK), ({}, Stack("amd", "python", {"hip": "7.0"}))]
)
def test_nothing_is_prepared_where_nothing_is_forked_yet(make, changes, stack):
    """Fresh launches need no server; AMD's knows its GPUs as it starts."""
    one, servers, notes, _ = make(fails=False, **changes)
    one.prepare(spec_of(MEMBER), stack, dict, contextlib.nullcontext)

    assert (0, []) == (servers.started, notes)
