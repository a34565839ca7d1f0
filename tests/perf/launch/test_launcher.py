from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from perf import contract
from perf.launch import processes
from perf.launch.command import marker
from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.launcher import launch
from perf.launch.server import CannotFork
from perf.launch.signals import Terminated
from perf.launch.stack import Stack
from perf.launch.waiting import Patience, Waiting
from perf.machine import REPOSITORY

HERE = Path(__file__).parent

needs_torchrun = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="this Python has no torch, and torchrun comes with it"
)

DRIVER = """
import os, sys
from perf.contract import LaunchSpec, decode
from perf.launch.launcher import launch
from perf.launch.stack import Stack
from perf.launch.waiting import Patience
spec = decode(LaunchSpec, open(sys.argv[1]).read(), sys.argv[1])
launch(spec, Stack("test", sys.executable), lock=None, module="fake_worker",
       environ=dict(os.environ, PYTHONPATH=sys.argv[2]), patience=Patience(grace=3.0))
"""


def wait_for(path, seconds=120.0):
    """Wait until a file exists; a shared machine may take its time."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.05)


@contextlib.contextmanager
def signal_once_running(out, signum):
    """Send this process a signal as soon as the worker has written its state, when handlers are surely set."""

    def send():
        wait_for(out / contract.STATE_FILE.format(rank=0))
        os.kill(os.getpid(), signum)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    thread.join()


@pytest.fixture
def start_driver(make_spec, fake_environ, tmp_path):
    """Return a function that starts a driver of its own with the fake worker, and waits until its ranks run."""
    drivers = []

    def start(*behaviours):
        single = (
            {"strategy": "single", "backend": "none", "ranks_per_node": 1} if len(behaviours) == 1 else {}
        )
        spec = make_spec(
            run=f"{tmp_path.parent.name}-{tmp_path.name}", out_dir=str(tmp_path / "out"), **single
        )
        (tmp_path / "spec.json").write_text(contract.encode(spec))
        arguments = [sys.executable, "-c", DRIVER, str(tmp_path / "spec.json"), str(HERE)]
        environ = {name: value for name, value in fake_environ(behaviours).items() if name != "PYTHONPATH"}
        driver = subprocess.Popen(arguments, cwd=REPOSITORY, env=environ, stderr=subprocess.PIPE, text=True)
        drivers.append((driver, spec))
        for rank in range(len(behaviours)):
            wait_for(tmp_path / "out" / contract.STATE_FILE.format(rank=rank))
        return driver, spec

    yield start
    for driver, spec in drivers:
        driver.kill()
        driver.communicate()
        processes.end_all(lambda: processes.marked(marker(spec)), grace=0.0)  # noqa: B023 - called at once


# One process.


def test_a_launch_that_ends_well_gives_its_record(run_fake, tmp_path):
    """A single launch returns its merged record, and its spec lies beside it."""
    before = time.time()
    record = run_fake("ok")
    assert isinstance(record, contract.LaunchRecord), record
    assert before <= record.started_at
    assert record.started_at + record.launch_seconds <= time.time()
    assert 256 / 0.04 == record.samples_per_second
    assert record.valid, record.reasons
    assert 0 < record.launch_seconds < 120
    spec = (tmp_path / "out" / contract.SPEC_FILE).read_text()
    assert record.launch == contract.decode(contract.LaunchSpec, spec, "spec").launch


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("raise_error", "exit status 1"),
        ("status_3", "exit status 3"),
        ("killed", "killed by signal 9 (SIGKILL)"),
        ("segfault", "killed by signal 11 (SIGSEGV)"),
        ("silent", "ended with exit status 0 and wrote no record"),
        ("half", "ended with exit status 0 and left its record cut short"),
        (
            "other",
            "ended with exit status 0 and wrote a record with launch '9999', where '0001' was launched",
        ),
    ],
)
def test_a_single_worker_that_fails_is_named_with_how_it_ended(run_fake, behaviour, status):
    """The error of a single launch tells exit status, signal or what is wrong with the record."""
    error = run_fake(behaviour)
    assert isinstance(error, LaunchFailed), error
    assert (0, status) == (error.rank, error.status)
    assert ("0001", "mnist_cnn-ddp-2cpu-gloo-fp32-native") == (error.launch, error.variant)
    assert "the worker" in str(error)
    assert "phase warm-up" in str(error)


@pytest.mark.parametrize("behaviours", [("unavailable",), ("unavailable", "unavailable")])
def test_what_the_stack_lacks_is_no_failure(run_fake, behaviours):
    """A worker that says what is not available here gives that reason, made harmless, alone and under torchrun."""
    error = run_fake(*behaviours)

    assert isinstance(error, NotAvailable), error
    assert str(error).startswith("not available here: fused: no ")
    assert "\x1b" not in str(error)


def test_the_log_of_a_failed_worker_is_shown_with_control_characters_made_harmless(run_fake):
    """The last lines of the worker's log stand in the message, and can't drive the terminal."""
    message = str(run_fake("raise_error"))
    assert r"RuntimeError: the \x1b[31mred\x1b[0m loader broke" in message
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", message)


def test_a_crash_shows_where_the_worker_was(run_fake):
    """The stack that faulthandler wrote at a segmentation fault is in the message."""
    assert re.search(r"crashed.*\n.*fake_worker\.py:\d+ in segfault", str(run_fake("segfault")))


def test_a_single_worker_that_hangs_is_ended_at_its_time_limit_with_phase_and_stack(run_fake):
    """At the time limit the worker is ended, and the error tells its phase and innermost frames."""
    error = run_fake("hang", time_limit=2.0)
    assert "ran past its time limit of 2 s while in phase warm-up" == error.status
    assert re.search(r"fake_worker\.py:\d+ in hang: time\.sleep\(600\)", str(error))


def test_a_stopped_worker_is_called_stopped(run_fake):
    """A worker under SIGSTOP can dump no stack; the error says that it was stopped, and it is ended all the same."""
    error = run_fake("stop", time_limit=1.5)
    assert "ran past its time limit of 1.5 s while in phase warm-up (stopped by a signal)" == error.status


def test_a_worker_and_its_child_that_ignore_sigterm_are_killed(run_fake):
    """SIGKILL follows the grace, also for a child that left the session; `run_fake` checks that none is left."""
    error = run_fake("stubborn", time_limit=1.5, patience=Patience(look=0.05, grace=0.3, stacks=2.0))
    assert 0 == error.rank


def test_what_a_good_launch_leaves_behind_is_ended(run_fake):
    """A process that a successful worker left in a session of its own is ended, and the record counts."""
    assert isinstance(run_fake("leave_child"), contract.LaunchRecord)


def test_records_of_an_earlier_try_are_not_taken(run_fake, tmp_path):
    """A launch that is tried again in the same folder does not live on the first one's record."""
    assert isinstance(run_fake("ok"), contract.LaunchRecord)
    assert "ended with exit status 0 and wrote no record" == run_fake("silent").status


def test_a_relative_folder_is_refused(run_fake):
    """The worker runs in another folder than the driver, so a relative out_dir is an error."""
    error = run_fake("ok", out_dir="out")
    assert isinstance(error, ValueError)
    assert "absolute" in str(error)


def test_a_python_that_cannot_be_started_raises_and_leaves_nothing(make_spec, tmp_path):
    """A stack that vanished after it was probed is an OSError, and signals are handled as before."""
    before = signal.getsignal(signal.SIGTERM)
    spec = make_spec(strategy="single", ranks_per_node=1, out_dir=str(tmp_path))
    with pytest.raises(FileNotFoundError):
        launch(spec, Stack("gone", str(tmp_path / "python3")), lock=None, environ={})
    assert before is signal.getsignal(signal.SIGTERM)


def test_ctrl_c_ends_the_launch_before_it_raises(run_fake, tmp_path):
    """SIGINT while waiting ends the launch, then raises KeyboardInterrupt from where it was called."""
    with signal_once_running(tmp_path / "out", signal.SIGINT), pytest.raises(KeyboardInterrupt):
        run_fake("hang")


def test_sigterm_raises_terminated_which_pytest_ends_for(run_fake, tmp_path):
    """SIGTERM with its default action ends the launch and raises an interrupt that says so."""
    with signal_once_running(tmp_path / "out", signal.SIGTERM), pytest.raises(Terminated, match="SIGTERM"):
        run_fake("hang")


def test_a_signal_wins_over_what_went_wrong_meanwhile(make_spec, tmp_path):
    """A scheduler that ends a job ends the server too: who sees only the server's end would launch again, fresh."""

    class Dying:
        def fork(self, *ignored, **_):
            os.kill(os.getpid(), signal.SIGTERM)
            raise CannotFork("its server has gone")

    spec = make_spec(strategy="single", ranks_per_node=1, out_dir=str(tmp_path))
    with pytest.raises(Terminated, match="SIGTERM"):
        launch(spec, Stack("s", sys.executable), lock=None, servers=Dying(), telemetry=False)


def test_a_killed_driver_leaves_a_worker_that_the_next_launch_ends(
    start_driver, make_spec, fake_environ, tmp_path
):
    """SIGKILL gives a driver no chance to clean up; the next launch finds its orphans and ends them."""
    driver, spec = start_driver("hang")
    driver.kill()
    driver.wait()
    assert 1 == len(processes.marked(marker(spec)))
    record = launch(
        make_spec(run="next", strategy="single", ranks_per_node=1, out_dir=str(tmp_path / "next")),
        Stack("test", sys.executable),
        lock=None,
        module="fake_worker",
        environ=fake_environ(["ok"]),
    )
    assert record.valid
    assert [] == processes.marked(marker(spec))


# Two ranks under torchrun.


@needs_torchrun
def test_two_ranks_that_end_well_are_merged(run_fake):
    """A DDP launch returns the merged record of both ranks, each with the threads that the spec gives."""
    record = run_fake("ok", "ok")
    assert isinstance(record, contract.LaunchRecord), record
    assert 2 * 256 / 0.04 == record.samples_per_second
    assert ["1", "1"] == [effective["omp_num_threads"] for effective in record.effective]


@needs_torchrun
def test_the_rank_that_hangs_is_named_and_not_the_one_that_waits_for_it(run_fake, monkeypatch):
    """Of two ranks at the time limit, the one outside the barrier is to blame; both show phase and frames."""
    # How long torchrun takes to start is the machine's business, so the limit passes when both ranks have dumped.
    monkeypatch.setattr(Waiting, "_limit_passed", Waiting._stacks_are_there)
    error = run_fake("barrier", "hang", time_limit=90.0)
    assert (1, "ran past its time limit of 90 s while in phase warm-up") == (error.rank, error.status)
    waits = r"rank 0: in phase warm-up for \d+ s, waits for the others\n.*distributed_c10d\.py:3 in barrier"
    assert re.search(waits, str(error))
    assert re.search(r"rank 1: in phase warm-up for \d+ s\n.*fake_worker\.py:\d+ in hang", str(error))


@needs_torchrun
@pytest.mark.parametrize(
    ("behaviour", "status", "said"),
    [
        ("raise_error", "exit status 1", r"RuntimeError: the \x1b[31mred"),
        ("killed", "killed by signal 9 (SIGKILL)", "out-of-memory killer"),
        ("segfault", "killed by signal 11 (SIGSEGV)", "in segfault"),
        ("silent", "ended with exit status 0 and wrote no record", "phase warm-up"),
    ],
)
def test_the_rank_that_fails_is_named_and_not_the_one_that_was_ended_with_it(
    run_fake, behaviour, status, said
):
    """While rank 0 waits, rank 1 fails: its own end is told, and rank 0 counts as ended with the rest."""
    error = run_fake("barrier", behaviour)
    assert (1, status) == (error.rank, error.status), error
    assert said in str(error)
    assert "rank 0: was running, in phase warm-up, until it was ended with the rest" in str(error)


@needs_torchrun
def test_half_a_record_of_one_rank_is_named_though_torchrun_is_content(run_fake):
    """Every process ends with status 0, one record is cut short: that rank is named, the other is done."""
    error = run_fake("ok", "half")
    assert (1, "ended with exit status 0 and left its record cut short") == (error.rank, error.status)
    assert "rank 0: done, its record is good" in str(error)


@needs_torchrun
def test_a_killed_torchrun_leaves_no_orphan(run_fake):
    """SIGKILL of torchrun orphans its ranks; they are ended before the error is raised (`run_fake` checks)."""
    error = run_fake("hang", "kill_agent")
    assert (None, "killed by signal 9 (SIGKILL)") == (error.rank, error.status), error
    assert "torchrun was killed by signal 9" in str(error)


@needs_torchrun
def test_sigterm_to_the_driver_leaves_no_orphan(start_driver):
    """A driver that is told to end takes torchrun and all ranks along, whatever sessions they are in."""
    driver, spec = start_driver("hang", "hang")
    assert 3 == len(processes.marked(marker(spec)))
    driver.terminate()
    _, errors = driver.communicate(timeout=60)
    assert [] == processes.marked(marker(spec))
    assert 0 != driver.returncode
    assert "Terminated: ended by SIGTERM; the running launch was cleaned up" in errors
