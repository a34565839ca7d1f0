"""Helper modules of this folder, and the suite as a user runs it, over a stack that answers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from perf import contract, records
from perf.profiles import PROFILES
from perf.suite.bench import Bench
from perf.suite.judge import Judge
from perf.suite.plan import Context
from perf.verdict.known import Library

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent / "helpers"

sys.path.insert(0, str(HERE))

from judging import HERE as SYSTEM  # noqa: E402
from launch_records import PAIR_GROUP, record_of  # noqa: E402


@dataclass
class Outcome:
    """What an inner run left: exit status, output, and its folder."""

    status: int
    output: str
    results: Path

    @property
    def run(self) -> records.Run:
        return records.Run((self.results / "latest").resolve())

    @property
    def verdicts(self) -> dict[str, str]:
        return {v.test: v.verdict for v in self.run.verdicts()}


@pytest.fixture
def suite(tmp_path):
    """Run pytest on the repository's perf tests in a process of its own; returns the outcome."""

    def run(*arguments: str, share: bool = True, variables: dict | None = None, **settings) -> Outcome:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
        environment |= {"FAKE_STACK": json.dumps(settings), "PYTHONPATH": str(HERE), "COLUMNS": "120"}
        environment |= {"FAKE_LOCKS": str(tmp_path / "locks"), **(variables or {})}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "fake_stack",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            # Nothing is timed here, so the node's lock is left to those who time something.
            [
                *command,
                *(["--share-node"] if share else []),
                "--results",
                str(tmp_path / "results"),
                *(arguments or ("perf",)),
            ],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Outcome(done.returncode, done.stdout + done.stderr, tmp_path / "results")

    return run


@pytest.fixture
def launched():
    """Specs in the order in which they were launched."""
    return []


@pytest.fixture
def bench(tmp_path, launched):
    """A bench over a launcher that returns at once; members can be told to fail or not to run."""

    def make(
        *, fail=(), fail_when=lambda spec: False, runnable=lambda member: True, profile="quick", **settings
    ) -> Bench:
        def launch(spec: contract.LaunchSpec) -> contract.LaunchRecord:
            launched.append(spec)
            if spec.variant in fail or fail_when(spec):
                raise OSError("no such device")
            member = next(m for m in PAIR_GROUP.members if m.variant.id == spec.variant)
            return record_of(member, launch=spec.launch, round=spec.round, escalation=spec.escalation)

        context = Context("run", PROFILES[profile], 2, "/cache", None)
        run = records.Run.create(tmp_path, "run")
        return Bench(context, run, launch, runnable, lambda record: "fine", **settings)

    return make


@pytest.fixture
def verdicts():
    """The verdict records that were written."""
    return []


@pytest.fixture
def judge(verdicts):
    """A function that makes what judges launches of a source, and writes to `verdicts`."""

    def make(
        source,
        profile="quick",
        *,
        require_references=False,
        files=(),
        earlier=(),
        surprise=pytest.fail,
        overrides=None,
    ):
        return Judge(
            source,
            "test_x",
            PROFILES[profile],
            "run",
            verdicts.append,
            library=Library(files, SYSTEM, "2026-11-28"),
            earlier=lambda member: list(earlier),
            margin=None,
            surprise=surprise,
            overrides=overrides or {},
            require_references=require_references,
        )

    return make
