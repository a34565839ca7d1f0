from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perf.ending import OUTPUT_LOST, READER_LEFT

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
    """rich, which prints them, has its own end for it, with status 1: it does not come to that."""
    done = without_reader("-m", "perf.report", str(RUN))

    assert ("", READER_LEFT) == (done.stderr, done.returncode)


TRAP = "#!/bin/bash\n#SBATCH --ntasks=2\npython train.py\n"

COMMANDS = [
    ("perf.report", str(RUN)),
    ("perf.report", "--help"),
    ("perf.report", "json", str(RUN)),
    ("perf.report", "export", "--format", "csv", str(RUN)),
    ("perf.cluster", "lint", "--json", "-"),
    ("perf.cluster", "lint", "-"),
    ("perf.launch.telemetry", "--seconds", "0", "--json"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_full_disk_behind_the_output_is_one_line(words):
    """It is no traceback and, where a command has findings, no finding."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            input=TRAP,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert "error: standard output can't be written: No space left on device\n" == done.stderr
    assert OUTPUT_LOST == done.returncode


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_closed_output_is_refused_before_anything_is_done(words):
    """The first file that is opened would be the standard output of all that the command starts."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", *words],
        cwd=ROOT,
        input=TRAP,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert "error: standard output can't be written: it is closed\n" == done.stderr
    assert OUTPUT_LOST == done.returncode


def test_a_command_that_handles_errors_of_files_does_not_take_the_outputs_for_one():
    """Whatever it says of a file or a scheduler, the reader of its output has left and that is no trouble."""
    code = (
        "from perf.ending import finish\ndef main():\n    try:\n        print('x', flush=True)\n"
        "    except OSError as error:\n        raise SystemExit(str(error))\n    return 0\nfinish(main)"
    )
    done = without_reader("-c", code)

    assert ("", READER_LEFT) == (done.stderr, done.returncode)


@pytest.mark.parametrize(
    ("error", "said"),
    [("KeyboardInterrupt", ""), ("KeyboardInterrupt('ended by SIGTERM')", "error: ended by SIGTERM\n")],
)
def test_ctrl_c_is_no_traceback(error, said):
    """The status is what a shell says of it; who was ended otherwise is told how."""
    code = f"from perf.ending import finish\ndef main():\n    raise {error}\nfinish(main)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (130, said) == (done.returncode, done.stderr)


@pytest.mark.parametrize("options", [(), ("-u",)])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii:backslashreplace"])
def test_the_output_is_otherwise_what_it_was(options, encoding):
    """Encoding, its errors and the order of text and bytes are Python's own."""
    code = (
        "import sys\nfrom perf.ending import finish\ndef main():\n    print('\\u2026', end='', flush=True)\n"
        "    sys.stdout.buffer.write(b'!')\n    return sys.stdout.fileno() - 1\nfinish(main)"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    words = [sys.executable, *options, "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, check=False)

    expected = "\u2026!".encode("utf-8") if encoding == "utf-8" else b"\\u2026!"
    assert (0, expected, b"") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "module",
    [
        "calibration",
        "calibration.experiments",
        "cluster",
        "cluster.overhead",
        "comparing",
        "data",
        "faults.selfcheck",
        "launch.telemetry",
        "replay",
        "report",
        "verdict.simulate",
    ],
)
def test_help_is_written_in_any_locale(module):
    """A description holds ASCII alone: argparse writes it as it is."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", f"perf.{module}", "--help"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


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
