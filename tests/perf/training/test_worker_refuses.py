"""What the worker can't do is told by its exit status and one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perf import contract
from perf.training import worker
from perf.training.state import State
from tests.perf.training.helpers import make_spec
from tests.perf.training.processes import mnist, run


def test_a_spec_with_a_wrong_key_ends_with_status_2(tmp_path):
    """The worker prints one sentence with file and key, no traceback, and writes nothing."""
    spec = json.loads(contract.encode(make_spec(tmp_path, workload="mnist_cnn")))
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({**spec, "batchsize": 8}), encoding="utf-8")
    done = run(["-m", "perf.training.worker", str(path)], tmp_path)

    assert worker.BAD_SPEC == done.status == 2
    assert f"the launch spec can't be used: {path}: $ has the unknown key 'batchsize'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workload": "alexnet"}, "there is no workload 'alexnet'"),
        ({"workload": "../x"}, "is no module name"),
        ({"workload": "idx"}, "is no workload: it lacks"),
        ({"strategy": "fsdp"}, "$.strategy must be one of single, dp, ddp, found 'fsdp'"),
        ({"device": "tpu"}, "$.device must be one of cpu, cuda, found 'tpu'"),
        ({"mode": "half"}, "$.mode must be one of full, synthetic, io, found 'half'"),
        ({"plan": "epoch"}, "$.plan must be one of window, epochs, solution, audit, rates, found 'epoch'"),
    ],
)
def test_a_spec_with_an_unknown_word_can_not_be_used(tmp_path, cache, capsys, changes, message):
    """A word that would silently be taken for another is refused before anything is trained."""
    path = tmp_path / "spec.json"
    path.write_text(contract.encode(mnist(tmp_path, cache, **changes)), encoding="utf-8")

    assert worker.BAD_SPEC == worker.main([str(path)])
    assert message in capsys.readouterr().err
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("text", [None, "", "[]", '{"run": "r"}', "\x00\x00"])
def test_a_file_that_is_no_spec_can_not_be_used(tmp_path, capsys, text):
    """A missing, empty or foreign file is one sentence with its name."""
    path = tmp_path / "spec.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    assert worker.BAD_SPEC == worker.main([str(path)])
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"precision": "fp16"}, "fp16: float16 is for GPUs"),
        ({"optimizations": ["fused"]}, "has no fused Adadelta here"),
        ({"optimizations": ["cuda_graph"]}, "cuda_graph: only GPUs have graphs"),
    ],
)
def test_what_is_not_available_ends_with_status_4(tmp_path, cache, monkeypatch, capsys, changes, reason):
    """The reason is in the log and in the rank's state, where the driver reads it; there is no record."""
    monkeypatch.setattr(State, "watch", lambda *_: None)
    path = tmp_path / "spec.json"
    spec = mnist(tmp_path, cache, **changes)
    path.write_text(contract.encode(spec), encoding="utf-8")

    assert worker.NOT_AVAILABLE == worker.main([str(path)]) == 4
    assert reason in capsys.readouterr().err
    state = json.loads(Path(spec.out_dir, contract.STATE_FILE.format(rank=0)).read_text())
    assert contract.UNAVAILABLE == state["phase"]
    assert reason in state["reason"]
    assert not Path(spec.out_dir, contract.RANK_FILE.format(rank=0)).exists()


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_the_worker_takes_one_argument(arguments, capsys):
    """Anything else is the usage, not a guess."""
    assert worker.BAD_SPEC == worker.main(arguments)
    assert "usage: python -m perf.training.worker SPEC.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "phase", "message"),
    [
        (
            {"precision": "fp64"},
            "setup",
            "precision 'fp64' is not one that this worker knows: default, fp32, tf32",
        ),
        ({"nodes": 2}, "setup", "the spec asks for 2 ranks, torchrun started 1"),
        ({"loader": "ffcv"}, "data", "loader 'ffcv' is not one"),
        ({"parameters": 1_199_881}, "data", "the catalogue says 1199881 parameters"),
        ({"train_samples": 50_000}, "data", "the catalogue says 50000 training samples, found 60000"),
    ],
)
def test_a_setting_that_is_not_in_force_ends_with_status_3(
    tmp_path, cache, monkeypatch, capsys, changes, phase, message
):
    """A refusal says what was asked for and what was found, leaves no record, and its phase stays visible."""
    # The dump of stacks is the whole process's, and pytest has its own.
    monkeypatch.setattr(State, "watch", lambda *_: None)
    path = tmp_path / "spec.json"
    spec = mnist(tmp_path, cache, **{"precision": "default", **changes})
    path.write_text(contract.encode(spec), encoding="utf-8")

    assert worker.NOT_IN_FORCE == worker.main([str(path)]) == 3
    error = capsys.readouterr().err
    assert error.startswith("stackproof worker: a setting was asked for and is not in force: ")
    assert message in error
    assert {"spec.json", "state-0.json"} == {found.name for found in tmp_path.iterdir()}
    assert phase == json.loads((tmp_path / "state-0.json").read_text(encoding="utf-8"))["phase"]
