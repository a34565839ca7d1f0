from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from perf.launch.waiting import Over, Patience, Waiting

PATIENCE = Patience(look=0.01, grace=0.0, victims=0.0, stacks=0.2)
DUMP = 'Thread 0x1 (most recent call first):\n  File "a.py", line 1 in <module>\n'


class FakeWatch:
    def __init__(self, ended_at, processes=()):
        self.ended_at = ended_at
        self._processes = dict(processes)
        self.looks = 0

    def look(self):
        self.looks += 1

    def alive(self):
        return self._processes


@pytest.fixture
def process():
    """Start a process that ends when it is told to."""
    code = "import sys; print(flush=True); sys.stdin.readline()"
    started = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started.stdout.readline()
    yield started
    started.kill()
    started.wait()
    started.stdin.close()
    started.stdout.close()


@pytest.fixture
def wait(make_spec, process, tmp_path):
    """Return a function that waits for the process under given circumstances and says why it was over."""

    def wait(watch, limit=3600.0, interrupted=lambda: False, patience=PATIENCE):
        spec = make_spec(out_dir=str(tmp_path), time_limit_seconds=limit)
        waiting = Waiting(spec, process, watch, interrupted, patience)
        return waiting.until_over(), waiting

    return wait


def test_the_wait_is_over_when_the_process_ends(wait, process):
    """The end is noted with its time, and the ranks are looked at once more."""
    process.stdin.close()
    watch = FakeWatch({})
    over, waiting = wait(watch)
    assert Over.ENDED is over
    assert waiting.ended_at is not None
    assert watch.looks >= 1


def test_the_wait_is_over_when_the_driver_is_told_to_end(wait):
    """An interruption ends the wait though the process runs."""
    over, waiting = wait(FakeWatch({}), interrupted=lambda: True)
    assert (Over.INTERRUPTED, None) == (over, waiting.ended_at)


def test_a_rank_that_ended_without_a_record_ends_the_wait(wait):
    """Once torchrun has had its time to notice, waiting on is no use."""
    assert Over.GAVE_UP is wait(FakeWatch({1: 0.0}))[0]


def test_a_rank_that_ended_with_its_record_does_not(wait, tmp_path):
    """A rank may be done before the others; the time limit still holds for them."""
    (tmp_path / "rank-1.json").write_text("{}")
    assert Over.LIMIT is wait(FakeWatch({1: 0.0}), limit=0.3)[0]


def test_at_the_limit_the_stacks_are_waited_for(wait, tmp_path):
    """With both stacks there, the wait is over at once, whatever the patience."""
    for rank in (0, 1):
        (tmp_path / f"stack-{rank}.txt").write_text(DUMP)
    assert Over.LIMIT is wait(FakeWatch({}), limit=0.0, patience=Patience(look=0.01, stacks=3600.0))[0]


def test_a_stack_that_never_comes_is_not_waited_for_forever(wait, tmp_path):
    """A rank that hung before it could arm its dump costs the patience and no more."""
    (tmp_path / "stack-0.txt").write_text(DUMP)
    assert Over.LIMIT is wait(FakeWatch({}), limit=0.0)[0]


def test_a_stopped_rank_is_noted_and_not_waited_for(wait, process, tmp_path):
    """A process under SIGSTOP dumps nothing; the kernel's word for it is kept."""
    (tmp_path / "stack-0.txt").write_text(DUMP)
    process.send_signal(signal.SIGSTOP)
    stopped = psutil.Process(process.pid)
    while stopped.status() != psutil.STATUS_STOPPED:
        pass
    watch = FakeWatch({}, {1: stopped})
    over, waiting = wait(watch, limit=0.0, patience=Patience(look=0.01, stacks=3600.0))
    assert (Over.LIMIT, {1: "stopped by a signal"}) == (over, waiting.kernel_states)


def test_a_launch_that_ends_while_its_stacks_are_awaited_has_ended(wait, process):
    """What ends by itself in the last moment counts as ended, not as hung."""

    class Ending(FakeWatch):
        def look(self):
            super().look()
            if self.looks == 3:
                process.stdin.close()
                process.wait()

    assert Over.ENDED is wait(Ending({}), limit=0.0, patience=Patience(look=0.01, stacks=3600.0))[0]
