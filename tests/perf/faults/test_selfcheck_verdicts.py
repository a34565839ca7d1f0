"""Faults that a perf test must show: its verdict is not ``pass``, in words that name the fault. Real inner runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from perf.faults.catalogue import FAULTS, INVALID, LAUNCH
from perf.machine import REPOSITORY

pytestmark = pytest.mark.selfcheck

MINE = [name for name, fault in FAULTS.items() if fault.caught_by not in (LAUNCH, INVALID)]

GPUS = shutil.which("nvidia-smi") is not None

RUN_SECONDS = 1800.0
"""A judgement of two sides at 7 launches each takes some five minutes on two slow cores."""


@pytest.mark.parametrize("name", MINE)
def test_a_planted_fault_is_caught_and_named(name, tmp_path):
    """The perf test that must catch it does not pass, and what it says matches the catalogue's words."""
    fault = FAULTS[name]
    if fault.gpu and not GPUS:
        pytest.skip(f"{name} needs a GPU")
    if fault.ranks > len(os.sched_getaffinity(0)):
        pytest.skip(f"{name} needs {fault.ranks} cores")
    launches = ["--launches", str(fault.launches)] if fault.launches is not None else []
    command = [
        sys.executable,
        *("-m", "pytest", "perf", "-q", "-p", "no:cacheprovider", "--profile", fault.profile, "--share-node"),
        *(
            "--device",
            "cuda" if fault.gpu else "cpu",
            *(("--against", sys.executable) if fault.profile.startswith("compare") else ()),
            "--stack",
            sys.executable,
            "--results",
            str(tmp_path),
            "--plant",
            name,
            *launches,
        ),
        *("-k", f"{fault.caught_by}{'' if fault.gpu else ' and mnist_cnn and cpu'}{fault.selection}"),
    ]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    records = [json.loads(line) for line in (tmp_path / "latest" / "records.jsonl").read_text().splitlines()]
    environment = json.loads((tmp_path / "latest" / "environment.json").read_text())

    assert {"fail": 1, "invalid": 11}[fault.verdict] == done.returncode, done.stdout + done.stderr
    assert re.search(fault.words, done.stdout), done.stdout
    # Of two stacks the new one is planted.
    assert all((f"planted: {name}" in record["flags"]) is (record["side"] != "old") for record in records)
    assert name == environment["options"]["plant"]
