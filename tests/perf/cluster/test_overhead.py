"""The measurement of what following jobs costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_few_jobs_are_submitted_followed_and_merged():
    """Every job is submitted once and leaves its records; the figures are one line of JSON."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    words = ["--jobs=3", "--launches=2", "--poll=1", "--seconds=1"]
    done = subprocess.run(
        [sys.executable, "-m", "perf.cluster.overhead", *words],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert 0 == done.returncode, done.stderr
    facts = json.loads(done.stdout)
    assert (3, 3, 6) == (facts["jobs"], facts["submissions"], facts["records"])
    assert facts["queries"] >= 2
