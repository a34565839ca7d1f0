from __future__ import annotations

import sys

import pytest

from perf.faults.selfcheck import beside
from perf.faults.selfcheck.beside import FOREIGN, placed
from perf.launch.stack import Stack
from perf.suite.library import complaint
from perf.verdict.known import Library
from perf.verdict.references import parse
from perf.verdict.system import System

OWN = Stack("own", sys.executable, {})


def test_the_foreign_reference_is_a_good_file_that_no_system_has(tmp_path):
    """It can be read, and says nothing of another machine."""
    file = parse(FOREIGN, "elsewhere.toml", complaint)

    assert ("mnist_cnn-single-1cpu-fp32-native", "throughput") in file.references
    assert (
        Library([file], System("none", 0, None, "a cpu"), "2026-11-28").lines[0].startswith("no references")
    )
    with placed("foreign-references", tmp_path, OWN) as (variables, options):
        assert {} == variables
        assert ["--references", str(tmp_path / "references"), "--require-references"] == options
        assert FOREIGN == (tmp_path / "references" / "elsewhere.toml").read_text()


def test_nothing_beside_is_nothing(tmp_path):
    """A fault without company changes neither environment nor options."""
    with placed("", tmp_path, OWN) as found:
        assert ({}, []) == found


def test_the_neighbour_is_there_meanwhile_and_gone_after(tmp_path, monkeypatch):
    """It says when it holds what it should, and ends when the launch has ended."""
    gone = tmp_path / "gone"
    code = f"import sys; print('held', flush=True); sys.stdin.read(); open({str(gone)!r}, 'w')"
    monkeypatch.setattr(beside, "NEIGHBOUR", code)
    with placed("gpu-memory", tmp_path, OWN):
        assert not gone.exists()
    assert gone.exists()


def test_a_neighbour_that_gets_no_memory_is_an_error(tmp_path, monkeypatch):
    """Without it nothing would be planted."""
    monkeypatch.setattr(beside, "NEIGHBOUR", "print('out of memory')")
    with pytest.raises(RuntimeError, match="could not take its 2 GiB"), placed("gpu-memory", tmp_path, OWN):
        pass
