"""Tests of the cluster room: no test starts a scheduler's command by accident."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from perf.cluster import commands
from perf.cluster.sites import parse_site

for helpers in (Path(__file__).parent / "helpers", Path(__file__).parents[1] / "suite" / "helpers"):
    sys.path.insert(0, str(helpers))


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch):
    """A scheduler's command that a test has not put there itself is an error; `fake_command` puts one there."""

    def refuse(words, **ignored):
        raise AssertionError(f"this test runs {words[0]} for real")

    monkeypatch.setattr(commands, "run", refuse)


@pytest.fixture
def fake_command(tmp_path, monkeypatch, request):
    """Put a program of one's own on PATH: `fake_command("squeue", "echo 1|RUNNING")`; others are not there."""
    monkeypatch.undo()
    folder = tmp_path / "fake-bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel", "bsub", "bjobs", "bkill"):
        _write(folder / name, f'echo "{name}: not in this test" >&2\nexit 99\n')

    def put(name: str, body: str) -> Path:
        _write(folder / name, body)
        return folder / name

    return put


def _write(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def site():
    """Make a site: `site(kind="slurm", more="[stacks.a]")`."""

    def make(
        kind: str = "slurm", scheduler: str = "", node: str = "cores = 8\ngpus = 4\nmost = 2", more: str = ""
    ):
        return parse_site(
            f'[scheduler]\nkind = "{kind}"\n{scheduler}\n[node]\n{node}\n{more}\n', "/sites/test.toml"
        )

    return make
