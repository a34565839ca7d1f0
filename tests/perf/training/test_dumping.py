"""A dump of stacks harms nobody, and comes once or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CURRENT = "Current thread 0x"
"""One header in each dump. Frames don't tell how many there are: of a deep stack the outermost are left out."""

# faulthandler belongs to the whole process, and pytest uses it too: dumps are armed in processes of their own.

# Calls without a pause, many deep: the frames of a rank that trains.
BUSY = """
import sys, threading
from perf.training.dumping import StackDump

sys.setrecursionlimit(10000)

def calls(depth):
    return depth and calls(depth - 1)

threading.Thread(target=lambda: [calls(30) for _ in iter(int, 1)], daemon=True).start()
with open(sys.argv[1], "w") as file:
    for _ in range(100):
        dump = StackDump(file, 0.002, 60.0)
        while dump._thread.is_alive():
            calls(300)
        dump.call_off()
"""

NATIVE = """
import ctypes, sys
from perf.training.dumping import StackDump

sleep = ctypes.PyDLL(None).usleep  # keeps the interpreter's lock
with open(sys.argv[1], "w") as file:
    dump = StackDump(file, 0.3, 0.1)
    sleep(900000)
    dump.call_off()
"""

SUSPENDED = """
import os, signal, subprocess, sys
from perf.training.dumping import StackDump

def calls(depth):
    return depth and calls(depth - 1)

with open(sys.argv[1], "w") as file:
    dump = StackDump(file, 0.2, 0.1)
    waker = f"import os, signal, time; time.sleep(1.0); os.kill({os.getpid()}, signal.SIGCONT)"
    process = subprocess.Popen([sys.executable, "-c", waker])
    os.kill(os.getpid(), signal.SIGSTOP)
    while dump._thread.is_alive():
        calls(300)
    dump.call_off()
    process.wait()
"""

# An end with an error, and a library that takes a second for its own: longer than until the signal.
ENDS_SLOWLY = """
import ctypes, sys
from perf.training.dumping import StackDump

libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.sleep, ctypes.c_void_p(1), None)
file = open(sys.argv[1], "w")
StackDump(file, 0.4, 0.4)
sys.exit(3)
"""

CALLED_OFF = """
import sys, time
from perf.training.dumping import StackDump

with open(sys.argv[1], "w") as file:
    StackDump(file, 0.2, 0.1).call_off()
    time.sleep(0.6)
"""


def run(code: str, path: Path, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (status, "") == (done.returncode, done.stderr)
    return path.read_text(encoding="utf-8")


def test_a_process_that_is_busy_outlives_its_dumps(tmp_path):
    """All hundred dumps of threads that call functions all the time are there: none is read while it changes."""
    assert 100 == run(BUSY, tmp_path / "dumps.txt").count(CURRENT)


def test_a_lock_that_is_not_given_away_does_not_stop_the_dump(tmp_path):
    """The signal interrupts native code that keeps the interpreter's lock; the thread then dumps nothing more."""
    text = run(NATIVE, tmp_path / "dump.txt")
    assert 1 == text.count(CURRENT)
    assert 'File "<string>", line 8 in <module>' in text


def test_a_process_that_slept_through_both_times_dumps_once(tmp_path):
    """A machine that was suspended wakes up behind them: the signal is there first."""
    assert 1 == run(SUSPENDED, tmp_path / "dump.txt").count(CURRENT)


def test_a_process_that_ends_slowly_keeps_its_own_exit_status(tmp_path):
    """Nobody called the dump off; the signal does not come to a process that can't handle it any more."""
    assert not run(ENDS_SLOWLY, tmp_path / "dump.txt", status=3)


def test_what_is_called_off_dumps_nothing(tmp_path):
    """Neither the thread nor the signal writes to a file that may be closed, and no signal ends the process."""
    assert not run(CALLED_OFF, tmp_path / "dump.txt")
