from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from perf.launch import watch as watch_module
from perf.launch.watch import RankWatch

AGENT = """
import os, subprocess, sys, time
rank = "import sys; sys.stdin.readline(); sys.exit({code})"
def start(number):
    code = rank.format(code=3 * number)
    environ = dict(os.environ, RANK=str(number))
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True, env=environ)
# The higher rank first: the numbers must come from the variable and not from the order.
ranks = {number: start(number) for number in (1, 0)}
print(ranks[0].pid, ranks[1].pid, flush=True)
for line in sys.stdin:
    ranks[int(line)].stdin.write(b"\\n")
    ranks[int(line)].stdin.flush()
"""

# An agent with one rank, which has one loader worker.
LOADER = """
import os, subprocess, sys
worker = "import sys; print(flush=True); sys.stdin.readline()"
rank = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
subprocess.run([sys.executable, "-c", rank], env=dict(os.environ, RANK="0"))
"""


@pytest.fixture
def agent():
    """Start an agent that ends each of two ranks when told its number, and never asks for their status."""
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    yield process, [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.communicate()


def look_until(watch, condition):
    """Look again and again until the condition holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        watch.look()
        time.sleep(0.05)


def test_ranks_are_found_and_the_order_of_their_ends_is_kept(agent):
    """Each rank is known by its variable; the one that ends first is seen first, with its exit status."""
    process, pids = agent
    watch = RankWatch(psutil.Process(process.pid), 2, direct=False)
    look_until(watch, lambda: len(watch.processes) == 2)
    assert {0: pids[0], 1: pids[1]} == {rank: found.pid for rank, found in watch.processes.items()}
    assert {0, 1} == set(watch.alive())
    process.stdin.write("1\n")
    look_until(watch, lambda: 1 in watch.ended_at)
    assert {0} == set(watch.alive())
    process.stdin.write("0\n")
    look_until(watch, lambda: 0 in watch.ended_at)
    assert watch.ended_at[1] < watch.ended_at[0]
    assert {0: 0, 1: 3} == watch.exit_codes


def test_a_rank_that_ended_before_it_was_ever_seen_counts_as_ended(agent, monkeypatch):
    """A rank that does not show up beside the others had ended between two looks, and before them."""
    process, _ = agent
    monkeypatch.setattr(watch_module, "MISSING_SECONDS", 0.0)
    monkeypatch.setattr(watch_module, "DISCOVERY_SECONDS", 0.0)
    watch = RankWatch(psutil.Process(process.pid), 3, direct=False)
    look_until(watch, lambda: watch.ended_at)
    assert {2} == set(watch.ended_at)
    assert {0, 1} == set(watch.alive())


def test_a_fork_that_names_itself_late_is_no_rank_that_ended(agent, monkeypatch):
    """Forks say who they are once they have read their data; one may take seconds longer than another."""
    process, pids = agent
    monkeypatch.setattr(watch_module, "MISSING_SECONDS", 0.0)
    monkeypatch.setattr(watch_module, "DISCOVERY_SECONDS", 0.0)
    named = {0: pids[0]}
    watch = RankWatch(psutil.Process(process.pid), 2, direct=False, named=lambda: named)
    for _ in range(3):
        watch.look()
    assert {} == watch.ended_at
    named[1] = pids[1]
    watch.look()
    assert {0, 1} == set(watch.alive())


def test_an_only_rank_is_the_process_itself():
    """A launch without torchrun needs no search."""
    me = psutil.Process()
    watch = RankWatch(me, 1, direct=True)
    watch.look()
    assert {0: me} == watch.alive() == watch.processes


def test_a_loader_worker_is_not_taken_for_its_rank():
    """Children of a rank inherit its variable; the oldest is the rank."""
    with subprocess.Popen(
        [sys.executable, "-c", LOADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        agent.stdout.readline()
        root = psutil.Process(agent.pid)
        watch = RankWatch(root, 1, direct=False)
        watch.look()
        assert agent.pid == watch.processes[0].ppid()
        agent.communicate(b"\n")


def test_a_root_that_is_gone_has_no_ranks():
    """Torchrun may end before the first look."""
    process = subprocess.Popen([sys.executable, "-c", ""], env=dict(os.environ))
    root = psutil.Process(process.pid)
    process.wait()
    watch = RankWatch(root, 2, direct=False)
    watch.look()
    assert {} == watch.processes
