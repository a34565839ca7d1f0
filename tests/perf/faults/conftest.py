"""Launch records, and the plants as their own process imports them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perf.faults.plant import INJECT

HELPERS = Path(__file__).parents[1] / "suite" / "helpers"


@pytest.fixture
def make_record(monkeypatch):
    """Return a function that makes a healthy launch record; keywords replace fields."""
    monkeypatch.syspath_prepend(str(HELPERS.parent.parent / "helpers"))
    from launch_records import PAIR_GROUP, record_of

    return lambda **changes: record_of(PAIR_GROUP.members[0], **changes)


@pytest.fixture
def plants(monkeypatch):
    """Return every plant by its fault's name."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(INJECT)])
    import planted

    return planted.PLANTS
