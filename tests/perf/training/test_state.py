"""A rank leaves behind what it was doing, also where it hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perf import contract
from perf.training.state import DUMP_BEFORE_LIMIT, PATIENCE, State

ROOT = Path(__file__).parents[3]

# faulthandler belongs to the whole process, and pytest uses it too: the dump is armed in a process of its own.
HANG = """
import ctypes, itertools, sys, threading, time
from perf import contract
from perf.training.state import State

def stuck_in_another_thread():
    time.sleep(60)

def stuck_here():
    time.sleep(60)

def stepping():
    step = itertools.count()
    state.counts(lambda: next(step))
    time.sleep(60)

state = State(sys.argv[1], 3)
state.enter("setup")
state.watch(float(sys.argv[2]))
if sys.argv[3] == "done":
    state.done()
    with open(sys.argv[1] + "/opened-later.txt", "w"):  # its descriptor is the one that the dump had
        time.sleep(3 * float(sys.argv[2]))
    sys.exit()
threading.Thread(target=stuck_in_another_thread, daemon=True).start()
if sys.argv[3] == "steps":
    stepping()
if sys.argv[3] == "native":
    def stuck_here():
        while True:
            ctypes.PyDLL(None).sleep(60)  # keeps the interpreter's lock; the signal ends one of them
stuck_here()
"""


def start(folder: Path, limit: float, end: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", HANG, str(folder), str(limit), end], cwd=ROOT)


def test_the_phase_is_on_disk_when_it_begins(tmp_path):
    """Each phase replaces the last one; the file says when it began and in which process."""
    state = State(str(tmp_path), 2)
    for phase in ("setup", "warm-up"):
        before = time.time()
        state.enter(phase)
        found = json.loads((tmp_path / "state-2.json").read_text(encoding="utf-8"))
        assert (phase, os.getpid()) == (found["phase"], found["pid"])
        assert before <= found["time"] <= time.time()

    assert ["state-2.json"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize("hang", ["hang", "native"])
def test_a_rank_that_hangs_dumps_the_stacks_of_all_its_threads(tmp_path, hang):
    """Before the time limit the file names the functions in which each thread is stuck; the process lives on.

    So it is where native code hangs and keeps the interpreter's lock.
    """
    process = start(tmp_path, 2.0, hang)
    dump = tmp_path / "stack-3.txt"
    try:
        deadline = time.monotonic() + 60
        while not (dump.exists() and "stuck_here" in dump.read_text(encoding="utf-8")):
            assert process.poll() is None
            assert time.monotonic() < deadline, "no dump"
            time.sleep(0.05)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()

    assert "stuck_in_another_thread" in dump.read_text(encoding="utf-8")
    assert "setup" == json.loads((tmp_path / "state-3.json").read_text(encoding="utf-8"))["phase"]


def test_a_rank_tells_whether_it_still_takes_steps(tmp_path):
    """Its steps are counted twice behind the dump; here each look is one step on."""
    process = start(tmp_path, 2.0, "steps")
    path = tmp_path / "progress-3.json"
    try:
        deadline = time.monotonic() + 60
        while not path.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline, "no progress was told"
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()

    found = json.loads(path.read_text(encoding="utf-8"))
    assert (1, 1) == (found["steps"], found["taken"])
    assert found["seconds"] > 0


def test_a_rank_that_is_done_dumps_nothing(tmp_path):
    """The dump is disarmed, also for a file that is opened later, and the last phase says so."""
    process = start(tmp_path, 0.5, "done")

    assert 0 == process.wait(timeout=60)
    assert not (tmp_path / "stack-3.txt").read_text(encoding="utf-8")
    assert not (tmp_path / "opened-later.txt").read_text(encoding="utf-8")
    assert not (tmp_path / "progress-3.json").exists()
    assert "done" == json.loads((tmp_path / "state-3.json").read_text(encoding="utf-8"))["phase"]


def test_the_dump_comes_before_the_driver_ends_the_rank():
    """The driver sends its first signal at the limit; the stacks are on disk by then."""
    assert pytest.approx(0.9) == DUMP_BEFORE_LIMIT < DUMP_BEFORE_LIMIT + PATIENCE < 1


def test_later_states_name_the_gpus_that_a_rank_took(tmp_path):
    """A rank that is killed leaves its state, and with it which card it was on."""
    state = State(str(tmp_path), 3)
    state.enter("setup")
    assert [] == json.loads((tmp_path / "state-3.json").read_text(encoding="utf-8"))["gpus"]
    state.takes(["5fa5"])
    state.enter("window")
    assert ["5fa5"] == json.loads((tmp_path / "state-3.json").read_text(encoding="utf-8"))["gpus"]


def test_whoever_samples_the_machine_is_told_of_a_windows_edges(tmp_path):
    """Each edge is one line with the rank; the time that is returned is the system's."""
    pipe = tmp_path / contract.EDGE_PIPE
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        state, before = State(str(tmp_path), 3), time.time()
        edges = [state.edge(True), state.edge(False)]
        told = os.read(reader, 4096)
    finally:
        os.close(reader)

    assert b"3 open\n3 close\n" == told
    assert before <= edges[0] <= edges[1] <= time.time()


@pytest.mark.parametrize("pipe", [False, True])
def test_where_nobody_samples_nobody_is_told_and_nothing_waits(tmp_path, pipe):
    """No pipe and a pipe without a reader cost nothing but the reading of the clock."""
    if pipe:
        os.mkfifo(tmp_path / contract.EDGE_PIPE)

    assert State(str(tmp_path), 0).edge(True) > 0


def test_a_sampler_that_has_gone_or_does_not_read_stops_no_rank(tmp_path):
    """A broken pipe and a full one are passed over."""
    pipe = tmp_path / contract.EDGE_PIPE
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    state = State(str(tmp_path), 0)
    for _ in range(20000):
        state.edge(True)
    os.close(reader)

    assert state.edge(False) > 0
