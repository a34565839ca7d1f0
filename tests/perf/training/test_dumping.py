"""A dump of stacks harms nobody, and comes once or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

# Calls without a pause: the frames of a rank that trains. faulthandler's own timer crashed such a process in its
# first ten dumps or so, in each of seven runs.
BUSY = """
import sys, threading
from perf.training.dumping import StackDump

def calls(depth):
    return depth and calls(depth - 1)

threading.Thread(target=lambda: [calls(30) for _ in iter(int, 1)], daemon=True).start()
with open(sys.argv[1], "w") as file:
    for _ in range(100):
        dump = StackDump(file, 0.002, 60.0)
        while dump._thread.is_alive():
            calls(50)
        dump.call_off()
"""

# faulthandler belongs to the whole process, and pytest uses it too: each dump is armed in a process of its own.
NATIVE = """
import ctypes, sys
from perf.training.dumping import StackDump

with open(sys.argv[1], "w") as file:
    dump = StackDump(file, 0.1, 0.1)
    ctypes.PyDLL(None).usleep(900000)  # keeps the interpreter's lock
    dump.call_off()
"""

CALLED_OFF = """
import sys, time
from perf.training.dumping import StackDump

with open(sys.argv[1], "w") as file:
    StackDump(file, 0.2, 0.1).call_off()
    time.sleep(0.6)
"""


def run(code: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
    return path.read_text(encoding="utf-8")


def test_a_process_that_is_busy_outlives_its_dumps(tmp_path):
    """A hundred dumps of threads that call functions all the time, each whole: none is read while it changes."""
    dumps = run(BUSY, tmp_path / "dumps.txt").split("Timeout (")[1:]
    assert 100 == len(dumps)
    assert all("in <module>" in dump and "???" not in dump for dump in dumps)


def test_a_lock_that_is_not_given_away_does_not_stop_the_dump(tmp_path):
    """Native code that keeps the interpreter's lock is seen by the timer that needs none; the thread comes too late."""
    text = run(NATIVE, tmp_path / "dump.txt")
    assert text.startswith("Timeout (0:00:00.2")
    assert 'File "<string>", line 7 in <module>' in text


def test_what_is_called_off_dumps_nothing(tmp_path):
    """Neither the thread nor the timer writes to a file that may be closed."""
    assert not run(CALLED_OFF, tmp_path / "dump.txt")
