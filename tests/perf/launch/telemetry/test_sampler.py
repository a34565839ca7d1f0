from __future__ import annotations

import io
import os
import threading
import time

import pytest

from perf.launch.telemetry.sampler import Edges, Sampler


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["0 open\n", "1 open\n", "1 close\n", "0 close\n"], ["open", "", "", "close"]),
        (["0 open\n1 open\n"], ["open"]),
        (["0 op", "en\n"], ["", "open"]),
        (["0 close\n", "x open\n", "0 opened\n", "\n"], ["", "", "", ""]),
        (["0 open\n0 close\n", "0 open\n"], ["close", "open"]),
    ],
)
def test_a_window_is_the_first_ranks_begin_to_the_last_ranks_end(lines, expected):
    """Only where the launch's window begins or ends is a look called for; other text is passed over."""
    edges = Edges()

    assert expected == [edges.take(line) for line in lines]


class Recorder:
    """Notes why looks were taken and whether memory might be summed."""

    def __init__(self):
        self.looks = []
        self.followed = []
        self.seen = threading.Condition()

    def look(self, why, may_sum):
        with self.seen:
            self.looks.append((why, may_sum))
            self.seen.notify_all()
        return why

    def wait_for(self, why):
        with self.seen:
            assert self.seen.wait_for(lambda: any(w == why for w, _ in self.looks), timeout=60), why


@pytest.fixture
def running():
    """A sampler over two pipes, in a thread; ended with the test."""
    recorder, out = Recorder(), io.StringIO()
    master_read, master = os.pipe()
    edges_read, edges = os.pipe()

    def start(interval):
        sampler = Sampler(recorder.look, recorder.followed.append, out, interval)
        thread = threading.Thread(target=sampler.run, args=(master_read, edges_read))
        thread.start()
        return thread

    threads = []

    def begin(interval=3600.0):
        threads.append(start(interval))
        return recorder, master, edges, out

    yield begin
    for thread in threads:
        try:
            os.close(master)
        except OSError:
            pass
        thread.join(timeout=60)
        assert not thread.is_alive()
    for fd in (master_read, edges_read, edges):
        os.close(fd)


def test_looks_are_taken_at_the_windows_edges_and_memory_never_inside(running):
    """A window that is over in no time has a look at each end; page tables are walked at its end only."""
    recorder, master, edges, out = running()
    recorder.wait_for("first")
    os.write(edges, b"0 open\n")
    recorder.wait_for("open")
    os.write(edges, b"0 close\n")
    recorder.wait_for("close")
    os.close(master)
    recorder.wait_for("last")

    assert [("first", True), ("open", False), ("close", True), ("last", False)] == recorder.looks
    assert "first\nopen\nclose\nlast\n" == out.getvalue()


def test_the_driver_says_whom_to_follow(running):
    """Only a line ``root PID`` counts."""
    recorder, master, _, _ = running()
    os.write(master, b"root 12\nroot x\nhello\nroot 3")
    os.write(master, b"4\n")
    end = time.monotonic() + 60
    while recorder.followed != [12, 34]:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_between_the_edges_it_looks_at_its_interval(running):
    """Ticks come without anybody asking."""
    recorder, _, _, _ = running(0.01)

    recorder.wait_for("tick")
