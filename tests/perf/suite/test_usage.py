"""A command line that can't be used is told before anything is measured, with the option's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def usage(*words):
    """Run pytest on perf tests, in a process of its own, and return what came of it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    command = [sys.executable, "-m", "pytest", "perf", "-q", *map(str, words)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--against="], "--against is empty, as an unset variable leaves it"),
        (["--confirms="], "--confirms is empty"),
        (["--data-root="], "--data-root is empty"),
        (["--results="], "--results is empty"),
        (["--margin=2%"], "--margin is of a comparison"),
        (["--launch-timeout=nan"], "--launch-timeout nan is no time limit"),
        (["--launch-timeout=inf"], "--launch-timeout inf is no time limit"),
        (["--cache-dir=/dev/null"], "--cache-dir /dev/null is no folder"),
        (["--data-root=/nowhere"], "--data-root /nowhere is no folder"),
        (
            ["--results=/dev/null"],
            "--results /dev/null: no run can be kept there (Not a directory: /dev/null/",
        ),
    ],
)
def test_a_value_that_can_t_be_used_is_a_usage_error(words, told):
    """Status 4, one line, and no run."""
    done = usage(*words)

    assert 4 == done.returncode, done.stdout + done.stderr
    assert f"ERROR: {told}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--stack=/nowhere/python"], "--stack"),
        ([f"--stack={sys.executable}", "--against=/nowhere/python", "--profile=compare-smoke"], "--against"),
    ],
)
def test_without_a_stack_the_first_test_is_the_last(tmp_path, words, option):
    """Each further one would say the same: one error, by the option's name, and status 11."""
    done = usage(*words, f"--results={tmp_path}")

    assert 11 == done.returncode, done.stdout + done.stderr
    assert f"\n{option} /nowhere/python: there is no file /nowhere/python\n" in done.stdout
    assert "no test can be run without the stack" in done.stdout
    assert " 1 error in " in f" {done.stdout.splitlines()[-1]}"
