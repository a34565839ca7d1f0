"""What the tests of the worker share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from perf import contract
from perf.contract import RankRecord
from perf.training import lengths, meter, phases, watched
from perf.training.identity import Identity
from perf.training.session import Session
from perf.training.state import State
from perf.training.strategies import join, leave
from tests.perf.training.helpers import FakeDevice, TinyWorkload, make_spec


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
    for module in (lengths, meter, phases, watched):
        monkeypatch.setattr(module, "time", fake.as_time)
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


@pytest.fixture
def run(tmp_path, cpu):
    """A function that runs a session in this process and returns its record, after its way through a file."""

    def run(workload=None, identity=cpu, **changes) -> RankRecord:
        spec = make_spec(tmp_path, **changes)
        torch.manual_seed(spec.seed)
        record = Session(
            spec, identity, workload or TinyWorkload(), State(str(tmp_path), 0), {"imports": 1.5}
        ).run()
        assert record == contract.decode(RankRecord, contract.encode(record), "record")
        return record

    return run
