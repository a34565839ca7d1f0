"""Specs and records to start from, and launches of the fake worker."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from perf.contract import EpochRecord, LaunchSpec, RankRecord
from perf.launch import processes
from perf.launch.command import marker
from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.launcher import launch
from perf.launch.stack import Stack
from perf.launch.waiting import Patience

HERE = Path(__file__).parent

# How long an example takes is the machine's business, which is shared; a deadline would fail tests for its load.


@pytest.fixture(scope="session")
def make_spec():
    """Return a function that makes a spec of a small DDP launch with two ranks; keywords replace fields."""

    def make(**changes):
        fields = {
            "run": "20261127T120000Z-abc123",
            "launch": "0001",
            "variant": "mnist_cnn-ddp-2cpu-gloo-fp32-native",
            "group": "g",
            "round": 0,
            "workload": "mnist_cnn",
            "strategy": "ddp",
            "device": "cpu",
            "backend": "gloo",
            "nodes": 1,
            "ranks_per_node": 2,
            "gpus": 0,
            "precision": "fp32",
            "loader": "native",
            "mode": "full",
            "plan": "window",
            "batch_size": 64,
            "workers": 1,
            "threads": 1,
            "cores": 4,
            "seed": 1,
            "warmup_steps": 2,
            "timed_steps": 4,
            "min_seconds": 0.0,
            "epochs": 1,
            "cache_dir": "/nowhere",
            "out_dir": "/nowhere/out",
            "time_limit_seconds": 60.0,
            "parameters": 1199882,
            "train_samples": 60000,
            "validation_samples": 10000,
        }
        return LaunchSpec(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def make_rank():
    """Return a function that makes the record of a rank: four steps of 10 ms; keywords replace fields."""

    def make(rank=0, **changes):
        fields = {
            "run": "20261127T120000Z-abc123",
            "launch": "0001",
            "variant": "mnist_cnn-ddp-2cpu-gloo-fp32-native",
            "rank": rank,
            "world_size": 2,
            "local_rank": rank,
            "host": "n1",
            "pid": 100 + rank,
            "started_at": 1000.0 + rank,
            "device_names": ["cpu"],
            "gpu_uuids": [],
            "stack": {"python": "3.11.7", "torch": "2.14.1"},
            "data": {"name": "mnist"},
            "warmup_steps": 2,
            "step_seconds": [0.01] * 4,
            "window_seconds": 0.04,
            "window_samples": 256,
            "wait_seconds": 0.001,
            "halves": [0.01, 0.01],
            "total_steps": 6,
            "loss_first": 2.0,
            "loss_last": 1.0,
            "losses_finite": True,
            "first_step_seconds": 0.5,
            "epochs": [EpochRecord(0, 1.0, 6, 384, False, 0.1)],
            "parameters": 1199882,
            "parameters_digest": "d",
            "peak_memory_bytes": {},
            "reserved_memory_bytes": {},
            "allocator_retries": {},
            "effective": {},
            "threads": {"torch": 1, "cores_allowed": 4},
            "startup_seconds": {"imports": 1.0},
            "telemetry": {},
        }
        return RankRecord(**{**fields, **changes})

    return make


@pytest.fixture
def fake_environ():
    """Return a function that gives the environment in which the fake worker is found and behaves as told, by rank."""

    def make(behaviours):
        return {**os.environ, "PYTHONPATH": str(HERE), "FAKE_BEHAVIOURS": json.dumps(behaviours)}

    return make


@pytest.fixture
def run_fake(make_spec, fake_environ, tmp_path):
    """Return a function that launches the fake worker and checks that no process of the launch is left afterwards.

    One behaviour makes a single launch, two make a DDP launch of two ranks. Returns the record or the error.
    """

    def run(*behaviours, time_limit=120.0, patience=None, **changes):
        single = {"strategy": "single", "backend": "none", "ranks_per_node": 1}
        fields = {
            # Two of xdist's workers have folders of one name; a launch ends what bears its own run's name.
            "run": f"{tmp_path.parent.name}-{tmp_path.name}",
            "out_dir": str(tmp_path / "out"),
            "time_limit_seconds": time_limit,
            **(single if len(behaviours) == 1 else {}),
        }
        spec = make_spec(**{**fields, **changes})
        try:
            return launch(
                spec,
                Stack("test", sys.executable),
                lock=None,
                module="fake_worker",
                environ=fake_environ(behaviours),
                patience=patience or Patience(look=0.05, grace=3.0, victims=1.0, stacks=2.0),
            )
        except (LaunchFailed, NotAvailable, ValueError) as error:
            return error
        finally:
            assert [] == processes.marked(marker(spec))

    return run


@pytest.fixture(scope="session")
def changed():
    """Return ``dataclasses.replace``."""
    return dataclasses.replace
