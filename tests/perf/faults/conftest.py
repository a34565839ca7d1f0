"""Real launches with a fault in them, for the tests that are marked ``selfcheck``."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest

from perf.catalogue import GROUPS
from perf.launch.stack import Stack, probe
from perf.profiles import PROFILES
from perf.suite.options import default_cache_dir
from perf.suite.plan import Context, build_spec

HELPERS = Path(__file__).parents[1] / "suite" / "helpers"


@pytest.fixture(scope="session")
def own_stack():
    """Return the running Python as the stack under test, asked once; skipped where it has no torch."""
    found = probe(sys.executable, os.environ, 300.0)
    if found.facts is None:
        pytest.skip(f"this Python is no stack: {found.problem}")
    return Stack("own", sys.executable, found.facts)


@pytest.fixture
def planned(tmp_path):
    """Return a function that plans one launch of the smoke profile on one or two ranks; keywords replace fields."""

    def plan(ranks, **changes):
        cache = default_cache_dir(dict(os.environ))
        os.makedirs(cache, exist_ok=True)
        # Two of xdist's workers have folders of one name; a launch ends what bears its own run's name.
        run = f"{tmp_path.parent.name}-{tmp_path.name}"
        context = Context(run, PROFILES["smoke"], len(os.sched_getaffinity(0)), cache, None, 240.0)
        group = GROUPS["ranks@mnist_cnn-cpu" if ranks == 2 else "loader@mnist_cnn-cpu"]
        spec = build_spec(context, group.members[0], launch="0001", round_number=0, out_dir=tmp_path)
        return dataclasses.replace(spec, **changes)

    return plan


@pytest.fixture
def make_record(monkeypatch):
    """Return a function that makes a healthy launch record; keywords replace fields."""
    monkeypatch.syspath_prepend(str(HELPERS))
    from launch_records import PAIR_GROUP, record_of

    return lambda **changes: record_of(PAIR_GROUP.members[0], **changes)
