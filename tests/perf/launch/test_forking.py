"""Launches by fork, with a real server: the same records and the same errors as a fresh start."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import sys
import threading
import time
from typing import ClassVar

import psutil
import pytest
from launch_records import spec_of

from perf.catalogue import home
from perf.launch import server as server_module
from perf.launch.cores import bound
from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.forking import Servers
from perf.launch.launcher import launch, launch_environment
from perf.launch.processes import in_session
from perf.launch.server import CannotFork, Fork, Server
from perf.launch.stack import Stack
from perf.launch.waiting import Over, Patience, Waiting

STACK = Stack("this", sys.executable, {})


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Servers that this module's tests share: a start takes seconds."""
    with Servers(tmp_path_factory.mktemp("servers") / "servers.log") as found:
        yield found


@pytest.fixture
def spec(tmp_path):
    """Make the spec of a short launch of a variant."""

    def make(variant="mnist_cnn-single-1cpu-fp32-native-synthetic", **changes):
        short = {
            "warmup_steps": 2,
            "timed_steps": 4,
            "batch_size": 2,
            "threads": 1,
            "time_limit_seconds": 120.0,
        }
        cache = os.environ.get("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return dataclasses.replace(
            spec_of(home(variant)),
            **{**short, "out_dir": str(tmp_path / "out"), "cache_dir": cache, **changes},
        )

    return make


def forked(spec, servers, stack=STACK, **environ):
    return launch(
        dataclasses.replace(spec, launcher="fork"),
        stack,
        lock=None,
        servers=servers,
        environ={**os.environ, **environ},
    )


def test_a_fork_gives_the_record_of_a_fresh_start(servers, spec):
    """Every field is there, the same batches were trained on, and only the start differs: a fork instead of imports."""
    record = forked(spec(), servers)
    fresh = launch(spec(), STACK, lock=None)

    assert ("fork", "fresh") == (record.launcher, fresh.launcher)
    assert record.valid, record.reasons
    assert fresh.effective == record.effective
    assert fresh.parameters_digests == record.parameters_digests
    assert fresh.loss_last == record.loss_last
    assert {"imports", "interpreter"} == set(fresh.startup_seconds[0]) - set(record.startup_seconds[0])
    assert {"fork"} == set(record.startup_seconds[0]) - set(fresh.startup_seconds[0])


def test_ranks_are_forks_under_torchruns_own_agent(servers, spec):
    """Two ranks meet over gloo, end with the same parameters, and nothing of the launch is left."""
    record = forked(spec("mnist_cnn-ddp-2cpu-gloo-fp32-native"), servers)

    assert record.valid, record.reasons
    assert 2 == len(record.parameters_digests) == 2 * len(set(record.parameters_digests))
    assert [2, 2] == [effective["world_size"] for effective in record.effective]
    assert all("fork" in start for start in record.startup_seconds)


def test_one_server_serves_an_environment(servers, spec):
    """Another number of threads is read as a process starts, so it has another server; the same one is used again."""
    forked(spec(), servers)
    known = len(servers._servers)
    forked(spec(), servers)
    assert known == len(servers._servers)
    forked(spec(threads=2), servers)
    assert known + 1 == len(servers._servers)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs 2 cores")
def test_one_server_serves_launches_on_all_cores_and_gpus(servers, spec):
    """A launch has the cores that its driver is bound to, also those that another one before it had not."""
    all_cores = sorted(os.sched_getaffinity(0))
    seen = []
    with bound(all_cores[:1]):
        seen.append(forked(spec(), servers, CUDA_VISIBLE_DEVICES="0"))
    known = len(servers._servers)
    with bound(all_cores[1:2]):
        seen.append(forked(spec(), servers, CUDA_VISIBLE_DEVICES="1"))
    seen.append(forked(spec("mnist_cnn-ddp-2cpu-gloo-fp32-native"), servers))

    assert [all_cores[:1], all_cores[1:2], all_cores] == [one.threads[-1]["core_ids"] for one in seen]
    assert known == len(servers._servers)


def test_one_server_serves_launches_with_and_without_nccl_s_log(servers, spec):
    """NCCL and its recorder read their variables when a group of ranks is made, which no server does."""
    forked(spec(), servers)
    known = len(servers._servers)
    forked(spec(), servers, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", TORCH_NCCL_DUMP_ON_TIMEOUT="1")
    assert known == len(servers._servers)


def test_a_server_that_was_started_before_serves_the_launch(spec, tmp_path):
    """What it takes is not in the launch, and starting it once more takes no time."""
    with Servers(tmp_path / "servers.log") as servers:
        one = spec()
        environment = launch_environment(one, STACK, {**os.environ, "MARK": "early"})
        assert servers.start(STACK, environment, one.out_dir) > 0.0
        assert servers.start(STACK, environment, one.out_dir) < 0.1
        record = forked(one, servers, MARK="early")
        assert 1 == len(servers._servers)
    assert "fork" in record.startup_seconds[0]


def test_hips_variables_have_a_server_of_their_own(servers, spec):
    """Its runtime may read them as its library is loaded."""
    amd = dataclasses.replace(STACK, facts={**STACK.facts, "hip": "7.0"})
    forked(spec(), servers, amd, CUDA_VISIBLE_DEVICES="0")
    known = len(servers._servers)
    forked(spec(), servers, amd, CUDA_VISIBLE_DEVICES="1")
    assert known + 1 == len(servers._servers)


@pytest.mark.parametrize(
    "variant", ["mnist_cnn-single-1cpu-fp32-native", "mnist_cnn-ddp-2cpu-gloo-fp32-native"]
)
def test_a_rank_that_can_t_use_its_spec_is_named_with_its_status(servers, spec, variant):
    """An error of the worker's own is told as it is after a fresh start, under torchrun's agent too."""
    with pytest.raises(LaunchFailed, match=r"(rank [01]|the worker) .*exit status 2"):
        forked(spec(variant, strategy="ddp" if "ddp" in variant else "single", plan="nonsense"), servers)


@pytest.mark.parametrize(
    "variant", ["mnist_cnn-single-1cpu-fp32-native", "mnist_cnn-ddp-2cpu-gloo-fp32-native"]
)
def test_what_a_rank_raises_is_shown(servers, spec, variant):
    """torchrun's agent keeps the traceback of a rank that is a function to itself; the message has it all the same."""
    with pytest.raises(LaunchFailed, match=r"window holds \d+ steps, 5000 were asked for"):
        forked(spec(variant, plan="epochs", timed_steps=5000, epochs=1, epoch_samples=1000), servers)


def test_what_the_stack_lacks_is_no_failure(servers, spec):
    """A loader that is not installed is not available, by fork as well."""
    with pytest.raises(NotAvailable, match="dali"):
        forked(spec(loader="dali", mode="io"), servers)


def test_a_launch_past_its_limit_is_ended_with_all_its_processes(servers, spec):
    """The time limit ends rank and loader workers, and what was slow is told; the server serves the next launch."""
    endless = spec(
        "mnist_cnn-single-1cpu-fp32-native",
        workers=1,
        timed_steps=10**6,
        time_limit_seconds=8.0,
        warmup_steps=1,
    )
    with pytest.raises(
        LaunchFailed, match="time limit of 8 s while in phase warm-up\\.\n  It is slow, not stuck"
    ):
        forked(endless, servers)
    assert not [p for server in servers._servers.values() for pid in server._started for p in in_session(pid)]
    assert forked(spec(), servers).valid


def test_a_killed_rank_is_told_by_its_signal(servers, spec, tmp_path):
    """SIGKILL from outside (the kernel's out-of-memory killer, say) is in the message."""
    endless = spec(timed_steps=10**6)
    script = (
        "import glob, json, os, signal, time\n"
        f"path = {str(tmp_path / 'out' / 'state-0.json')!r}\n"
        "while not os.path.exists(path) or json.load(open(path))['phase'] == 'setup': time.sleep(0.1)\n"
        "os.kill(json.load(open(path))['pid'], signal.SIGKILL)\n"
    )
    killer = subprocess.Popen([sys.executable, "-c", script])
    with pytest.raises(LaunchFailed, match="SIGKILL"):
        forked(endless, servers)
    assert 0 == killer.wait()


def test_a_server_that_died_is_not_asked_again(spec, tmp_path):
    """The error says so, and the stack is known as one that can't be forked."""
    with Servers(tmp_path / "log") as servers:
        forked(spec(), servers)
        (server,) = servers._servers.values()
        psutil.Process(server._process.pid).kill()
        server._process.wait()
        with pytest.raises(CannotFork, match="has gone"):
            forked(spec(), servers)
        assert "has gone" in servers.why_not(STACK)


def test_what_a_server_says_at_its_end_is_the_reason(spec, tmp_path):
    """It tells why it can't fork and ends at once: its words count, not that it has ended."""
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport socket, sys\n"
        "with socket.socket(socket.AF_UNIX) as s:\n    s.connect(sys.argv[3])\n"
        '    s.sendall(b\'{"unfit": "a thread is there"}\\n\')\n'
    )
    python.chmod(0o755)
    unfit = Stack("unfit", str(python), {})
    with Servers(tmp_path / "log") as servers:
        with pytest.raises(CannotFork, match="^a thread is there$"):
            forked(spec(), servers, unfit)
        assert "a thread is there" == servers.why_not(unfit)


def test_a_server_that_does_not_answer_is_ended(spec, tmp_path, monkeypatch):
    """Else it would take the request up later, beside the launch that was started in its place."""
    with Servers(tmp_path / "log") as servers:
        servers.start(STACK, launch_environment(spec(), STACK, os.environ), spec().out_dir)
        (server,) = servers._servers.values()
        psutil.Process(server._process.pid).suspend()
        monkeypatch.setattr(server_module, "READY_SECONDS", 0.5)
        monkeypatch.setattr(server_module, "STOP_SECONDS", 0.5)
        with pytest.raises(CannotFork, match="does not answer"):
            forked(spec(), servers)

        assert {} == servers._servers
        assert server._process.poll() is not None


def test_a_driver_that_is_told_to_end_does_not_wait_for_a_server(spec, tmp_path):
    """While a launch starts its server signals are only noted; the wait asks whether there was one."""
    with Servers(tmp_path / "log") as servers, pytest.raises(CannotFork, match="told to end"):
        servers.fork(
            STACK,
            launch_environment(spec(), STACK, os.environ),
            spec=os.path.join(spec().out_dir, "spec.json"),
            stdout=os.devnull,
            stderr=os.devnull,
            torchrun=None,
            told=lambda: True,
        )


@pytest.fixture
def spoken():
    """Return a server that is only the two ends of its connection."""
    mine, its = socket.socketpair()
    mine.setblocking(False)
    server = Server.__new__(Server)
    server._connection, server._received, server._started, server._ended, server._gone = (
        mine,
        b"",
        [],
        {},
        False,
    )
    with mine, its:
        yield server, its


def test_a_forks_end_is_not_waited_for_until_the_next_look(spoken, spec):
    """Its server tells of it, so that the wait ends at once; another launch's end does not end it."""
    server, its = spoken

    class Watch:
        ended_at: ClassVar = {}

        def look(self):
            """There is nothing to see."""

    said = b'{"ended": 7, "status": 0}\n{"ended": 42, "status": 256}\n'
    speaker = threading.Timer(0.1, its.sendall, [said])
    speaker.start()
    # Whoever sleeps until the next look finds the driver told to end there.
    told = iter([False, True])
    waiting = Waiting(spec(), Fork(server, 42), Watch(), lambda: next(told), Patience(look=10.0))

    assert Over.ENDED is waiting.until_over()
    assert 1 == Fork(server, 42).wait()
    speaker.join()


def test_a_fork_that_goes_on_is_waited_for_no_longer_than_asked(spoken):
    """As `subprocess.Popen` has it."""
    with pytest.raises(subprocess.TimeoutExpired):
        Fork(spoken[0], 42).wait(0.01)


def test_a_number_that_is_used_again_is_a_launch_that_runs(spoken):
    """Process numbers come round: what an earlier launch with it ended with says nothing of the next one."""
    server, its = spoken
    its.sendall(b'{"started": 42}\n{"ended": 42, "status": 256}\n')
    assert 1 == Fork(server, 42).poll()
    its.sendall(b'{"started": 42}\n')
    assert Fork(server, 42).poll() is None


def test_a_stack_without_torch_can_t_be_forked(spec, tmp_path):
    """What its server said last is the reason."""
    bare = Stack("bare", sys.executable, {}, wrapper=("/usr/bin/env", "PYTHONPATH=/nowhere", "false"))
    with Servers(tmp_path / "log") as servers:
        with pytest.raises(CannotFork, match="ended with status 1"):
            forked(spec(), servers, bare)
        assert servers.why_not(bare)


def test_a_driver_that_is_gone_leaves_neither_server_nor_launch(spec, tmp_path):
    """When the driver is killed its connection closes: the server ends what it started, and itself."""
    script = (
        "from pathlib import Path; from perf.contract import LaunchSpec; from perf.launch.forking import Servers\n"
        "from perf.launch.launcher import launch; from perf.launch.stack import Stack; import sys\n"
        f"spec = LaunchSpec(**{dataclasses.asdict(spec(timed_steps=10**6))!r})\n"
        f"servers = Servers(Path({str(tmp_path / 'log')!r}))\n"
        "launch(spec, Stack('this', sys.executable, {}), lock=None, servers=servers)\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", script])
    state = tmp_path / "out" / "state-0.json"
    deadline = time.monotonic() + 120
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    processes = psutil.Process(driver.pid).children(recursive=True)
    assert len(processes) >= 2
    driver.kill()
    driver.wait()
    gone, alive = psutil.wait_procs(processes, timeout=60)
    assert [] == alive
    assert gone


def test_a_server_serves_no_more_launches_than_it_may(tmp_path, spec):
    """After so many launches the next one is forked from another process, and the first has ended."""
    with Servers(tmp_path / "servers.log", launches=1) as servers:
        assert forked(spec(), servers).valid
        (first,) = [server._process for server in servers._servers.values()]
        assert forked(spec(), servers).valid
        (second,) = [server._process for server in servers._servers.values()]

    assert first.pid != second.pid
    assert first.poll() is not None
