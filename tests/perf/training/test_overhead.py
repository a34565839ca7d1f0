"""What measuring costs: two loops that train the same, in pairs, with an exact interval."""

from __future__ import annotations

import json
import statistics

import pytest
import torch

from perf.profiles import PROFILES
from perf.training import overhead
from perf.training.overhead import WINDOW_SECONDS, WINDOW_STEPS, Found, measure
from perf.training.paired import WARM_UP, Noted
from tests.perf.training.helpers import TinyWorkload

CPU = torch.device("cpu")


def test_every_pair_has_both_sides():
    """Seconds of the bare and of the instrumented block; of each block's end; of what the host does more a step."""
    found = measure(TinyWorkload(), CPU, pairs=3, steps=2, seed=1)

    assert 3 == len(found.pairs)
    assert all(seconds > 0 for pair in found.pairs for seconds in pair)
    assert 3 == len(found.closing)
    assert all(seconds > 0 for seconds in found.closing)
    assert 101 == len(found.idle)
    assert 402 == len(found.noted.steps) + len(found.noted.looks) == len(found.noted.waits)


def test_a_window_is_as_long_as_the_suites():
    """A meter looks at losses the less often, the longer its window: what is measured is what the suite pays."""
    sizes = PROFILES["full"].sizes_for("cuda", "window")

    assert (sizes.timed_steps, sizes.min_seconds) == (WINDOW_STEPS, WINDOW_SECONDS)
    assert sizes.warmup_steps == WARM_UP


def test_both_sides_train_one_network(monkeypatch):
    """Of two copies, the one that lies better in memory would be the faster, and the ratio hold that."""
    built = []
    plain = TinyWorkload.build_model
    monkeypatch.setattr(TinyWorkload, "build_model", lambda self: built.append(1) or plain(self))
    measure(TinyWorkload(), CPU, pairs=2, steps=2, seed=1)

    assert [1] == built


def test_the_command_prints_one_line(monkeypatch, capsys):
    """JSON with the ratio, its interval and what it was measured on."""
    monkeypatch.setattr(overhead, "load_workload", lambda name: TinyWorkload())

    assert 0 == overhead.main(["--device", "cpu", "--pairs", "6", "--steps", "3"])
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert ("mnist_cnn", 6, 3, 1, torch.__version__) == tuple(
        found[key] for key in ("workload", "pairs", "steps", "threads", "torch")
    )
    assert found["low"] <= found["ratio"] <= found["high"]
    assert found["bare_step_ms"] > 0
    assert found["host_us_low"] <= found["host_us"] <= found["host_us_high"]
    assert found["host_us"] / 1e3 / found["bare_step_ms"] == pytest.approx(found["host_share"])
    assert found["closing_us"] > 0
    # A step of the tiny network takes far less than 10 ms, so that its window looks at some steps only.
    assert 0 < found["note_us"]
    assert 0 < found["note_with_look_us"]
    assert 0 < found["wait_note_us"]
    # A CPU's only clock; nothing is told of events, which it does not have.
    assert ("host", None, None) == (found["clock"], found["clock_ratio"], found["clock_interval"])


def test_each_pairs_ratio_can_be_kept(monkeypatch, capsys, tmp_path):
    """Whole, one a line, so that several runs can be told of as one."""
    monkeypatch.setattr(overhead, "load_workload", lambda name: TinyWorkload())
    kept = tmp_path / "ratios.txt"

    assert 0 == overhead.main(["--device", "cpu", "--pairs", "7", "--steps", "2", "--ratios", str(kept)])
    ratios = [float(line) for line in kept.read_text(encoding="ascii").splitlines()]
    assert 7 == len(ratios)
    assert json.loads(capsys.readouterr().out)["ratio"] == statistics.median(ratios)


def test_a_gpus_steps_by_the_hosts_clock_are_held_against_its_events(monkeypatch, capsys):
    """The median ratio of the windows and its interval, where that clock is what a launch would choose."""
    measured = Found([(1.0, 1.0)] * 6, [1e-6], [1e-6] * 6, Noted([1e-6], [], []), "host", [1.0, 1.01] * 20)
    monkeypatch.setattr(overhead, "load_workload", lambda name: TinyWorkload())
    monkeypatch.setattr(overhead, "measure", lambda *arguments: measured)

    assert 0 == overhead.main(["--device", "cpu", "--pairs", "6", "--steps", "1"])
    found = json.loads(capsys.readouterr().out)
    assert (1.005, [1.0, 1.01]) == (found["clock_ratio"], found["clock_interval"])


@pytest.mark.parametrize("options", [["--pairs", "5"], ["--steps", "0"], ["--threads", "0"]])
def test_too_little_to_tell_anything_is_refused(options, capsys):
    """Fewer pairs than an interval needs are a usage error, before anything is loaded."""
    with pytest.raises(SystemExit) as caught:
        overhead.main(options)

    assert 2 == caught.value.code
    assert "at least 6 pairs" in capsys.readouterr().err


def test_a_network_that_is_none_is_refused(capsys):
    """One line that says which there are, before anything is trained."""
    with pytest.raises(SystemExit, match="2"):
        overhead.main(["--workload", "nope"])
    assert "invalid choice: 'nope'" in capsys.readouterr().err
