from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from perf.launch import processes
from perf.launch.environment import DRIVER, MARKER

SLEEP = "import time; print(flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


@pytest.fixture
def start():
    """Return a function that starts a Python that runs some code, once it has printed a line; all are ended."""
    started = []

    def start(code=SLEEP, **environ):
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_marked_processes_are_found_in_whatever_session(start):
    """The mark of a launch is found in the environment of any process of this user; another mark is not."""
    mine = start(**{MARKER: "run/1"})
    start(**{MARKER: "run/10"})
    assert [mine.pid] == [process.pid for process in processes.marked("run/1")]


def test_the_driver_itself_is_never_among_them(monkeypatch):
    """A driver that was started inside a launch does not end itself."""
    code = (
        "from perf.launch import processes; import os\n"
        "print([p.pid for p in processes.marked('run/2') if p.pid == os.getpid()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, MARKER: "run/2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[]" == done.stdout.strip()


def test_sigterm_is_enough_for_who_listens(start):
    """A process that ends on SIGTERM is not killed."""
    process = start()
    assert [] == processes.end_all(lambda: [psutil.Process(process.pid)], grace=60.0)
    assert -signal.SIGTERM == process.wait()


def test_sigkill_follows_the_grace(start):
    """A process that ignores SIGTERM is killed."""
    process = start(STUBBORN)
    assert [] == processes.end_all(lambda: [psutil.Process(process.pid)], grace=0.2)
    assert -signal.SIGKILL == process.wait()


def test_who_is_in_a_hurry_does_not_wait_for_the_grace(start):
    """A second Ctrl-C ends the grace at once."""
    process = start(STUBBORN)
    before = time.monotonic()
    processes.end_all(lambda: [psutil.Process(process.pid)], grace=3600.0, hurry=lambda: True)
    assert -signal.SIGKILL == process.wait()
    assert time.monotonic() - before < 3600.0


def test_a_stopped_process_is_ended(start):
    """SIGTERM alone would wait for a stopped process until it goes on."""
    process = start()
    process.send_signal(signal.SIGSTOP)
    assert [] == processes.end_all(lambda: [psutil.Process(process.pid)], grace=60.0)
    assert -signal.SIGTERM == process.wait()


def test_a_process_that_appears_during_the_grace_is_ended_too(start):
    """`find` is asked again before the end, so what was started meanwhile does not escape."""
    first = start(STUBBORN)
    late = start(STUBBORN)
    looks = iter([[first], [first, late]])
    found = [first]

    def find():
        nonlocal found
        found = next(looks, found)
        return [psutil.Process(process.pid) for process in found if process.poll() is None]

    assert [] == processes.end_all(find, grace=0.2)
    assert (-signal.SIGKILL, -signal.SIGKILL) == (first.wait(), late.wait())


def test_nothing_to_end_ends_at_once():
    """Without processes there is no grace to wait for."""
    assert [] == processes.end_all(list, grace=3600.0)


def test_descendants_are_found_through_sessions(start):
    """A grandchild in a session of its own belongs to its root."""
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True).wait()"
    root = start(code)
    found = processes.descendants(psutil.Process(root.pid))
    assert 2 == len(found)
    assert root.pid == found[0].pid
    processes.end_all(lambda: found, grace=60.0)


def test_an_ended_root_has_no_descendants(start):
    """A zombie counts as ended, and a process that is gone has nothing below it."""
    process = start("print(flush=True)")
    root = psutil.Process(process.pid)
    process.stdout.read()
    while not processes.is_gone(root):
        time.sleep(0.01)
    assert [] == processes.descendants(root)
    process.wait()
    assert [] == processes.descendants(root)


@pytest.mark.parametrize(
    ("code", "expected"), [("import sys; sys.exit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)]
)
def test_a_zombie_tells_its_exit_code(code, expected):
    """The exit status can be read before the parent asks for it, and not afterwards."""
    process = subprocess.Popen([sys.executable, "-c", code])
    while not processes.is_gone(psutil.Process(process.pid)):
        time.sleep(0.01)
    assert expected == processes.exit_code_of_zombie(process.pid)
    process.wait()
    assert processes.exit_code_of_zombie(process.pid) is None


def test_a_running_process_has_no_exit_code():
    """The field is only meaningful for a zombie."""
    assert processes.exit_code_of_zombie(os.getpid()) is None


def test_processes_of_a_driver_that_is_gone_are_left_over(start):
    """When no process with a driver's PID, start time and PID namespace lives, its launches are orphans."""
    namespace = processes.driver_mark().split("/")[0]
    living = start(**{DRIVER: processes.driver_mark()})
    ended = start("print(flush=True)")
    ended.wait()
    orphan = start(**{DRIVER: f"{namespace}/{ended.pid}/1"})
    reused = start(**{DRIVER: f"{namespace}/{os.getpid()}/1"})
    elsewhere = start(**{DRIVER: f"pid:[1]/{ended.pid}/1"})
    found = {process.pid for process in processes.left_over()}
    assert {orphan.pid, reused.pid} <= found
    assert not {living.pid, elsewhere.pid} & found
