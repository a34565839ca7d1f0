from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest
import torch

from perf.training import sampled
from perf.training.sampled import measure
from tests.perf.training.helpers import TinyWorkload

CPU = torch.device("cpu")

needs_psutil = pytest.mark.skipif(
    importlib.util.find_spec("psutil") is None, reason="the sampler needs psutil"
)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def test_the_sampler_stands_still_in_every_other_block(monkeypatch):
    """Each pair has a block without and one with it, in both orders; afterwards it runs on."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    states = []
    plain = sampled.bare

    def watched(*arguments):
        states.append(state_of(process.pid) == "T")
        plain(*arguments)

    monkeypatch.setattr(sampled, "bare", watched)
    try:
        found = measure(TinyWorkload(), CPU, process.pid, pairs=4, seconds=0.01, seed=1)
        assert state_of(process.pid) != "T"
    finally:
        process.kill()
        process.wait()

    assert [True, False, False, True, True, False, False, True] == states[2:]
    assert 4 == len(found)
    assert all(seconds > 0 for pair in found for seconds in pair)


@needs_psutil
def test_the_command_prints_one_line(monkeypatch, capsys):
    """JSON with the ratio, its interval, and what the sampler itself used."""
    monkeypatch.setattr(sampled, "load_workload", lambda name: TinyWorkload())
    arguments = [sys.executable, "--device", "cpu", "--pairs", "6", "--seconds", "0.01"]

    assert 0 == sampled.main(arguments)
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert ("mnist_cnn", 6, 1, torch.__version__) == tuple(
        found[key] for key in ("workload", "pairs", "threads", "torch")
    )
    assert found["low"] <= found["ratio"] <= found["high"]
    assert found["sampler_cpu_seconds"] > 0


@pytest.mark.parametrize("options", [["--pairs", "5"], ["--seconds", "0"], ["--threads", "0"]])
def test_too_little_to_tell_anything_is_refused(options, capsys):
    """Fewer pairs than an interval needs are a usage error, before anything is started."""
    with pytest.raises(SystemExit) as caught:
        sampled.main([sys.executable, *options])

    assert 2 == caught.value.code
    assert "at least 6 pairs" in capsys.readouterr().err


def test_a_network_that_is_none_is_refused(capsys):
    """One line that says which there are, before anything is trained."""
    with pytest.raises(SystemExit, match="2"):
        sampled.main([sys.executable, "--workload", "nope"])
    assert "invalid choice: 'nope'" in capsys.readouterr().err
