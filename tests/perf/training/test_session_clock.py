"""Which clock times the window of a rank's launch, and what becomes of a window that was dropped."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from perf.training.clocks import HostClock
from perf.training.identity import Identity
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.session import Session
from perf.training.state import State
from tests.perf.training.helpers import make_spec, separable


@pytest.mark.parametrize(
    ("mode", "loader", "cuda"),
    [
        ("full", SimpleNamespace(), True),
        ("io", SimpleNamespace(), False),
        ("io", SimpleNamespace(fetch=lambda indices: None), True),
    ],
)
def test_a_loader_that_works_on_the_device_is_timed_by_its_clock(tmp_path, monkeypatch, mode, loader, cuda):
    """Draining it by the host's clock would time how fast kernels are queued."""
    monkeypatch.setattr("perf.training.session.CudaClock", lambda devices: "device's")
    spec = dataclasses.replace(make_spec(tmp_path), device="cuda", mode=mode)
    session = Session(
        spec,
        Identity(0, 1, 0, "n", [torch.device("cuda", 0)]),
        SimpleNamespace(),
        State(str(tmp_path), 0),
        {},
    )

    assert cuda is (session._clock(loader) == "device's")


@pytest.mark.parametrize(
    ("changes", "world_size", "either"),
    [
        ({}, 1, True),
        ({"mode": "synthetic"}, 1, True),
        ({}, 2, False),
        ({"device": "cpu"}, 1, False),
        ({"plan": "epochs"}, 1, False),
        ({"mode": "io"}, 1, False),
        ({"optimizations": ["cuda_graph"]}, 1, False),
        ({"watch_operators": True}, 1, False),
        ({"trace": "torch"}, 1, False),
        ({"optimizations": ["non_blocking"]}, 1, False),
        ({"loader": "resident"}, 1, False),
        ({"loader": "resident", "mode": "synthetic"}, 1, True),
        ({"batch_size": 2}, 1, True),
        ({"batch_size": 5}, 1, False),
        # Two workers' queues take 20 of 200 steps of each epoch.
        ({"workers": 2}, 1, False),
        ({"workers": 2, "mode": "synthetic"}, 1, True),
    ],
)
def test_one_ranks_plain_window_may_be_timed_by_its_hosts_clock(
    tmp_path, monkeypatch, changes, world_size, either
):
    """Where it turns out to be wrong a window is dropped: not by one rank of several, nor where another counts it.

    Nor where an epoch is short, or batches that come in groups would not be waited for.
    """
    monkeypatch.setattr("perf.training.session.CudaClock", lambda devices: "device's")
    monkeypatch.setattr("perf.training.session.EitherClock", lambda device: "either")
    monkeypatch.setattr("perf.training.session.Meter", lambda clock, **options: SimpleNamespace(clock=clock))
    monkeypatch.setattr("perf.training.session.OperatorWatch", lambda on_gpu: None)
    spec = dataclasses.replace(make_spec(tmp_path), **{"device": "cuda", "mode": "full", **changes})
    device = torch.device(spec.device, 0)
    session = Session(
        spec, Identity(0, world_size, 0, "n", [device]), SimpleNamespace(), State(str(tmp_path), 0), {}
    )
    size = changes.get("batch_size", 2)
    workers = changes.get("workers", 0)
    plan = LoaderPlan(size, workers, 0, 1, distributed=False, pin_memory=False, seed=1)
    loader = native_loader(separable(400, 1), plan)

    assert either is (session._make_meter(loader).clock == "either")


def test_the_edges_of_a_window_that_was_dropped_are_dropped_with_it(run, monkeypatch):
    """Records say when a window was open, which is held against how long it took."""
    wrong = [True]
    told = []
    monkeypatch.setattr(HostClock, "fits", lambda self, lag, step: not (wrong and wrong.pop()))
    monkeypatch.setattr(State, "edge", lambda self, opens: told.append(opens) or float(len(told)))
    record = run(timed_steps=6)

    assert [True, False, True, False] == told
    assert [[3.0, 4.0]] == record.window_edges
    assert 6 == len(record.step_seconds)
    assert "host" == record.clock


def test_a_record_names_the_clock_of_its_steps(run, monkeypatch):
    """Where there are none it names none."""
    assert "host" == run().clock
    monkeypatch.setattr(HostClock, "name", lambda self, marks: "events")
    assert "events" == run().clock
    assert run(plan="audit", mode="io", warmup_steps=0, timed_steps=0).clock is None
