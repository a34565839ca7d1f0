"""Which rank a process is, on which devices it works, and what those are called."""

from __future__ import annotations

import builtins
import os
import time
import uuid
from types import SimpleNamespace

import psutil
import pytest
import torch

from perf import contract
from perf.training.identity import (
    DeviceMissing,
    device_name,
    gpu_uuid,
    identify,
    seconds_since_launch,
    seconds_since_process_start,
    take,
)

CPU = torch.device("cpu")


@pytest.fixture
def gpus(monkeypatch):
    """A function that pretends that torch sees some GPUs; it returns the list of devices that were made current."""

    def see(count: int) -> list[torch.device]:
        current: list[torch.device] = []
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "set_device", current.append)
        monkeypatch.setattr(torch.cuda, "init", lambda: current.append("begun"))
        return current

    return see


def test_without_torchrun_a_process_is_the_only_rank():
    """No variable means rank 0 of 1, on this host."""
    identity = identify("cpu", 1, {})

    assert (0, 1, 0, os.uname().nodename) == (
        identity.rank,
        identity.world_size,
        identity.local_rank,
        identity.host,
    )
    assert ([CPU], CPU, False) == (identity.devices, identity.device, identity.is_cuda)


def test_torchruns_variables_name_the_rank():
    """Rank, world size and local rank are torchrun's."""
    identity = identify("cpu", 1, {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"})

    assert (5, 8, 1) == (identity.rank, identity.world_size, identity.local_rank)


def test_a_rank_takes_the_gpu_of_its_local_rank(gpus):
    """The third rank of a node works on its third GPU, which it leaves untouched until it takes it."""
    current = gpus(4)
    identity = identify("cuda", 1, {"RANK": "6", "WORLD_SIZE": "8", "LOCAL_RANK": "2"})

    assert ([torch.device("cuda", 2)], []) == (identity.devices, current)
    assert identity.is_cuda
    take(identity.devices)
    assert [torch.device("cuda", 2), "begun"] == current


def test_data_parallel_takes_several_gpus(gpus):
    """One rank feeds all devices, and its parameters lie on the first."""
    current = gpus(4)
    identity = identify("cuda", 4, {})

    assert [torch.device("cuda", i) for i in range(4)] == identity.devices
    take(identity.devices)
    assert [identity.device, "begun"] == current == [torch.device("cuda", 0), "begun"]


def test_a_cpu_needs_no_taking(gpus):
    """Nothing of CUDA's is begun for it."""
    current = gpus(0)
    take([CPU])

    assert [] == current


@pytest.mark.parametrize(
    ("visible", "per_rank", "local_rank", "message"),
    [
        (0, 1, 0, "needs GPUs 0 to 0, but torch sees 0"),
        (2, 1, 2, "needs GPUs 2 to 2"),
        (3, 4, 0, "needs GPUs 0 to 3"),
    ],
)
def test_a_missing_gpu_is_named(gpus, visible, per_rank, local_rank, message):
    """The error says which GPUs are needed, how many there are, and what restricts them."""
    current = gpus(visible)
    environ = {"LOCAL_RANK": str(local_rank), "CUDA_VISIBLE_DEVICES": "0,1"}

    with pytest.raises(DeviceMissing, match=rf"{message}.*CUDA_VISIBLE_DEVICES is 0,1"):
        identify("cuda", per_rank, environ)
    with pytest.raises(DeviceMissing, match="CUDA_VISIBLE_DEVICES is not set"):
        identify("cuda", per_rank, {"LOCAL_RANK": str(local_rank)})
    assert [] == current


def test_a_cpu_has_no_uuid():
    """Only GPUs have one; a CPU's name is its kind."""
    assert gpu_uuid(CPU) is None
    assert "cpu" == device_name(CPU)


def test_a_gpus_uuid_is_text_or_unknown(monkeypatch):
    """An older torch can't tell: that is null, not an invented value."""
    gpu = torch.device("cuda", 0)
    properties = SimpleNamespace(uuid=uuid.UUID(int=10))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)

    assert "00000000-0000-0000-0000-00000000000a" == gpu_uuid(gpu)
    del properties.uuid
    assert gpu_uuid(gpu) is None


def test_a_gpu_is_called_by_its_product_name(monkeypatch):
    """The name is the driver's."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Fast GPU {device.index}")

    assert "Fast GPU 1" == device_name(torch.device("cuda", 1))


def test_a_process_knows_how_long_it_has_existed():
    """The time since its start is the kernel's, from before the interpreter could read a clock."""
    expected = time.time() - psutil.Process().create_time()

    # The kernel counts in ticks of 10 ms; psutil takes the boot time in whole seconds.
    assert pytest.approx(expected, abs=2.0) == seconds_since_process_start()


def test_without_proc_the_start_is_unknown(monkeypatch):
    """A system without Linux's /proc has no answer, and no error."""

    def missing(*_: object, **__: object):
        raise FileNotFoundError("/proc/self/stat")

    monkeypatch.setattr(builtins, "open", missing)
    found = seconds_since_process_start()
    monkeypatch.undo()

    assert found is None


def test_a_rank_knows_when_its_launch_began():
    """The driver's clock is the rank's: what passed before the process began counts too."""
    started = time.monotonic() - 30.0
    found = seconds_since_launch({contract.STARTED: repr(started)}, 3600.0)

    assert 30.0 <= found <= time.monotonic() - started


@pytest.mark.parametrize("value", [None, "soon", "1e30", "-1e30"])
def test_a_clock_that_is_not_the_ranks_leaves_its_own_start(value):
    """No number, or one from another machine's clock, is not taken for the launch's start."""
    environ = {} if value is None else {contract.STARTED: value}
    before = seconds_since_process_start()

    assert before <= seconds_since_launch(environ, 60.0) <= seconds_since_process_start()
