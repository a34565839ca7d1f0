from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perf.ending import READER_LEFT

ROOT = Path(__file__).parents[2]
RUN = ROOT / "docs" / "measurements" / "2026-11-28-h100-whole"


def without_reader(*words):
    """Run a command whose output nobody reads."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            [sys.executable, *words], cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)


@pytest.mark.parametrize(
    "words",
    [
        ("perf.report", "json", str(RUN)),
        ("perf.report", "--help"),
        ("perf.cluster", "--help"),
        ("perf.calibration", "--help"),
        ("perf.comparing", "--help"),
        ("perf.faults.selfcheck", "--help"),
        ("perf.data", "--help"),
        ("perf.launch.telemetry",),
        ("perf.replay", "tests/data/throughput_history.csv"),
        ("perf.verdict.simulate", "--help"),
    ],
    ids=" ".join,
)
def test_a_command_whose_reader_left_ends_in_silence(words):
    """`… | head` is no error of the command: no traceback, and the status that a shell gives for it."""
    done = without_reader("-m", *words)

    assert "" == done.stderr
    # argparse swallows the error of a help text that is written at once.
    assert done.returncode in ({0, READER_LEFT} if "--help" in words else {READER_LEFT})


def test_tables_end_in_silence_too():
    """rich, which prints them, has its own end for it, with status 1."""
    done = without_reader("-m", "perf.report", str(RUN))

    assert "" == done.stderr
    assert 0 != done.returncode


def test_another_broken_pipe_is_an_error_as_any():
    """Only the reader of the standard output may leave."""
    code = "from perf.ending import finish\ndef main():\n    raise BrokenPipeError('mine')\nfinish(main)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert 1 == done.returncode
    assert "BrokenPipeError: mine" in done.stderr


def test_the_status_is_the_commands_own():
    """What the command returns is what the process ends with."""
    code = "from perf.ending import finish\nfinish(lambda: 7)"

    assert 7 == subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode
