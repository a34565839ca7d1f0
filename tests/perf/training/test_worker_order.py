"""In which order a rank does what it does before it trains, and behind its record."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
import torch

from perf import contract
from perf.launch import cause
from perf.training import worker
from tests.perf.training.helpers import make_spec

PLAIN = ["devices", "take", "devices"]
FED = ["feed", "open", *PLAIN]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [*FED, "session with a feed"]),
        ({"tied_cores": 1}, ["tie", *FED, "session with a feed"]),
        ({"tied_cores": 1, "numa": True}, ["tie", *FED, "session with a feed"]),
        ({"strategy": "ddp"}, [*FED, "join", "session with a feed"]),
        ({"numa": True}, [*PLAIN, "bind", "session without one"]),
        ({"mode": "full"}, [*PLAIN, "session without one"]),
        ({"loader": "resident"}, [*PLAIN, "session without one"]),
        ({"plan": "rates"}, [*PLAIN, "card"]),
    ],
)
def test_a_rings_workers_begin_before_a_gpu_is_touched(tmp_path, monkeypatch, changes, expected):
    """On the cores that their rank is tied to; a rank that is bound to those beside its GPU asks that first."""
    said = []

    class Told:
        def __init__(self, *arguments):
            startup, feed = arguments[4], arguments[-1]
            said.append(f"session with{' a feed' if feed else 'out one'}")
            # Counting GPUs is the first that is asked of the driver.
            assert startup["devices"] >= 0.01
            assert (feed is None) is ("data" not in startup)
            assert arguments[0].seed == torch.initial_seed()

        def run(self):
            return None

    def tells(word, answer=None):
        return lambda *arguments: said.append(word) or answer

    monkeypatch.setattr(torch.cuda, "device_count", lambda: time.sleep(0.01) or 1)
    monkeypatch.setattr(worker, "gpu_uuid", lambda device: "GPU-1")
    for name, word in (
        ("open_feed", "open"),
        ("tie", "tie"),
        ("bind", "bind"),
        ("take", "take"),
        ("join", "join"),
    ):
        monkeypatch.setattr(worker, name, tells(word, {"any": "thing"}))
    monkeypatch.setattr(worker, "measure_card", tells("card"))
    monkeypatch.setattr(worker, "Session", Told)
    monkeypatch.setattr(worker.contract, "encode", lambda record: "")
    state = SimpleNamespace(enter=said.append, takes=lambda gpus: None)
    spec = make_spec(tmp_path, **{"device": "cuda", "mode": "synthetic", "seed": 77, **changes})
    worker.run(spec, None if spec.plan == "rates" else object(), state)

    assert [*expected, "record"] == said
    # What tells which rank is behind.
    places = [cause.PHASES.index(word) for word in said if word in cause.PHASES]
    assert sorted(places) == places


def test_what_compiled_is_ended_behind_the_record(tmp_path, monkeypatch):
    """The rank's state says that it is done, and then nothing is waited for that has nothing more to do."""
    said = []
    state = SimpleNamespace(enter=said.append, watch=lambda *limits: None, done=lambda: said.append("done"))
    monkeypatch.setattr(worker, "State", lambda *where: state)
    monkeypatch.setattr(worker, "run", lambda *arguments: said.append("run"))
    monkeypatch.setattr(worker, "end_compilers", lambda: said.append("end"))
    monkeypatch.setattr(worker.gc, "freeze", lambda: None)
    path = tmp_path / "spec.json"
    path.write_text(contract.encode(make_spec(tmp_path, workload="mnist_cnn")), encoding="utf-8")

    assert 0 == worker.main([str(path)])
    assert ["setup", "run", "done", "end"] == said
