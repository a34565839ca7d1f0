from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from perf import contract
from perf.faults.plant import planted_environment
from perf.launch.stack import Stack
from perf.launch.telemetry import companion as module
from perf.launch.telemetry.companion import Companion, gpu_arguments, interpreter
from perf.machine import REPOSITORY

STACK = Stack("s", "/p", {})


def test_a_launch_is_sampled_from_begin_to_end(make_spec, tmp_path):
    """The sampler follows whom it is told to, looks at a window's edges, and leaves no pipe behind."""
    spec = make_spec(out_dir=str(tmp_path))
    with Companion(spec, STACK, os.environ) as beside:
        beside.follow(os.getpid())
        pipe = tmp_path / contract.EDGE_PIPE
        end = time.monotonic() + 120
        while not (tmp_path / "telemetry.jsonl").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        edges = os.open(pipe, os.O_WRONLY)
        os.write(edges, b"0 open\n0 close\n0 open\n")
        os.close(edges)
        while '"why":"open"' not in (tmp_path / "telemetry.jsonl").read_text():
            assert time.monotonic() < end
            time.sleep(0.02)
    header, samples = beside.samples()

    assert "" == beside.problem
    assert header.cores_allowed >= 1
    assert "first" == samples[0].why
    assert "last" == samples[-1].why
    assert any(s.host.processes for s in samples)
    assert not pipe.exists()


def test_a_fault_that_is_planted_in_a_launch_is_none_of_its_sampler(make_spec, tmp_path, monkeypatch):
    """Python's path leads to planted faults; the sampler has the driver's own."""
    monkeypatch.setenv("PYTHONPATH", "/driver/packages")
    spec = make_spec(out_dir=str(tmp_path))
    planted = planted_environment("one-core", os.environ)
    assert "/driver/packages" != planted["PYTHONPATH"]
    assert "/driver/packages" == Companion(spec, STACK, planted)._environ["PYTHONPATH"]
    monkeypatch.delenv("PYTHONPATH")
    assert "PYTHONPATH" not in Companion(spec, STACK, planted)._environ


def test_a_sampler_that_fails_costs_telemetry_and_no_launch(make_spec, tmp_path, monkeypatch):
    """What went wrong is told in words."""
    monkeypatch.setattr(module, "MODULE", "perf.launch.telemetry.no_such_module")
    with Companion(make_spec(out_dir=str(tmp_path)), STACK, os.environ) as beside:
        beside.follow(1)

    assert "the sampler ended with exit status 1: " in beside.problem
    assert "no_such_module" in beside.problem
    assert (None, []) == beside.samples()


def test_a_driver_that_is_killed_takes_its_sampler_along(tmp_path):
    """Its input ends with the driver, and so does the sampler."""
    code = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from types import SimpleNamespace\n"
        "from perf.launch.stack import Stack\n"
        "from perf.launch.telemetry.companion import Companion\n"
        "spec = SimpleNamespace(out_dir=sys.argv[1], device='cpu')\n"
        "beside = Companion(spec, Stack('s', '/p', {}), os.environ).__enter__()\n"
        "print(beside._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    pid = int(driver.stdout.readline())
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    end = time.monotonic() + 120
    while os.path.exists(f"/proc/{pid}") and "Z" not in _state(pid):
        assert time.monotonic() < end
        time.sleep(0.05)


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize(
    ("device", "facts", "expected"),
    [
        ("cpu", {"gpus": [{"uuid": "u0"}]}, []),
        (
            "cuda",
            {"gpus": [{"uuid": "u0"}, {"uuid": None}]},
            ["--gpus", "nvml", "--interval=1", "--uuid=u0", "--uuid="],
        ),
        ("cuda", {"gpus": [{"uuid": "u0"}], "hip": "6.4"}, ["--gpus", "amdsmi", "--interval=1", "--uuid=u0"]),
    ],
)
def test_the_cards_of_the_stack_are_looked_at(make_spec, device, facts, expected):
    """NVML for CUDA, amdsmi for HIP, neither for a launch on the CPU."""
    assert expected == gpu_arguments(make_spec(device=device), facts)


def test_the_sampler_runs_in_the_drivers_own_python():
    """The stack's Python need not have psutil."""
    assert sys.executable == interpreter()[0]
