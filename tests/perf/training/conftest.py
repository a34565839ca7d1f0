"""What the tests of the worker share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from perf.training import meter, phases
from perf.training.identity import Identity
from perf.training.strategies import join, leave
from tests.perf.training.helpers import FakeDevice


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two cores are shared with other work; and torch's threads are as they were after a test."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cpu() -> Identity:
    """The only rank, on the CPU."""
    return Identity(0, 1, 0, "node", [torch.device("cpu")])


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """A device and a host whose time passes only where a test says so."""
    fake = FakeDevice()
    monkeypatch.setattr(meter, "time", fake.as_time)
    monkeypatch.setattr(phases, "time", fake.as_time)
    return fake


@pytest.fixture
def process_group(cpu: Identity, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process group over gloo, of this process alone."""
    for name, value in {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
        "RANK": "0",
        "WORLD_SIZE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    join("gloo", cpu, 60.0)
    try:
        yield
    finally:
        leave()
    assert not dist.is_initialized()


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """Where data are generated if this machine has none: once for all launches."""
    return tmp_path_factory.mktemp("cache")
