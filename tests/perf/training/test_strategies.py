"""A model is put on its devices and wrapped; ranks wait for each other and agree."""

from __future__ import annotations

import datetime

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from perf.training import strategies
from perf.training.identity import Identity
from perf.training.strategies import join, largest, leave, unwrap, wait_for_all, wrap
from tests.perf.training.helpers import TinyWorkload

CPU = torch.device("cpu")


def test_a_single_rank_trains_the_plain_model(cpu):
    """Nothing is wrapped around it."""
    model = TinyWorkload().build_model()

    assert model is wrap(model, "single", cpu) is unwrap(model)


def test_ddp_wraps_the_model_and_gives_it_back(cpu, process_group):
    """DDP holds the very model, and on the CPU no device ids."""
    model = TinyWorkload().build_model()
    wrapped = wrap(model, "ddp", cpu)

    assert isinstance(wrapped, DistributedDataParallel)
    assert wrapped.device_ids is None
    assert model is unwrap(wrapped)


def test_ddps_knobs_are_turned(cpu, process_group):
    """Cap and switches reach DDP; what was not asked for is torch's own."""
    plain = wrap(TinyWorkload().build_model(), "ddp", cpu)
    turned = wrap(TinyWorkload().build_model(), "ddp", cpu, 1, ("view", "static", "nobuffers"))

    def facts(model):
        return (
            model._get_ddp_logging_data()["bucket_cap_bytes"],
            model.gradient_as_bucket_view,
            model.static_graph,
            model._get_ddp_logging_data()["broadcast_buffers"],
        )

    assert (25 * 2**20, False, False, True) == facts(plain)
    assert (2**20, True, True, False) == facts(turned)


def test_data_parallel_gets_every_device_of_the_rank(monkeypatch):
    """All GPUs of the rank, in their order."""
    given: dict[str, object] = {}

    class Parallel(torch.nn.Module):
        def __init__(self, module: torch.nn.Module, device_ids: list[int]) -> None:
            super().__init__()
            self.module = module
            given["device_ids"] = device_ids

    monkeypatch.setattr(torch.nn, "DataParallel", Parallel)
    model = TinyWorkload().build_model()
    monkeypatch.setattr(model, "to", lambda device: given.update(to=device) or model)
    identity = Identity(0, 1, 0, "n", [torch.device("cuda", i) for i in (0, 1, 2)])

    assert model is unwrap(wrap(model, "dp", identity))
    assert {"to": torch.device("cuda", 0), "device_ids": [0, 1, 2]} == given


def test_outside_a_process_group_nobody_waits():
    """One rank is its own largest, and there is nobody to wait for or to leave."""
    assert not dist.is_initialized()
    assert 7 == largest(7, CPU)
    wait_for_all()
    leave()


def test_in_a_process_group_ranks_agree(process_group):
    """The largest number is found by a collective; a group of one is the smallest case of it."""
    assert (1, "gloo") == (dist.get_world_size(), dist.get_backend())
    assert 7 == largest(7, CPU)
    wait_for_all()


def test_ranks_agree_on_the_largest_number(process_group, monkeypatch):
    """The collective asks for the maximum, and its answer is what the rank gets."""

    def all_reduce(tensor: torch.Tensor, op: object) -> None:
        assert dist.ReduceOp.MAX == op
        tensor.fill_(max(int(tensor), 12))

    monkeypatch.setattr(strategies.dist, "all_reduce", all_reduce)

    assert [12, 30] == [largest(5, CPU), largest(30, CPU)]


@pytest.fixture
def joined(monkeypatch) -> dict[str, object]:
    """The arguments of the process group that was asked for, by a torch that knows `device_id`."""
    found: dict[str, object] = {}

    def init(backend: str, timeout: datetime.timedelta, device_id: object = None) -> None:
        found.update(backend=backend, timeout=timeout, device_id=device_id)

    monkeypatch.setattr(strategies.dist, "init_process_group", init)
    return found


def test_a_collective_ends_with_the_launchs_time_limit(joined, cpu):
    """A rank whose peer has gone does not wait for torch's own half an hour."""
    join("gloo", cpu, 90.0)

    assert {"backend": "gloo", "timeout": datetime.timedelta(seconds=90), "device_id": None} == joined


def test_a_gpus_communicator_is_bound_at_once_where_torch_can(joined, monkeypatch):
    """Its start then does not fall into the first step; an older torch is asked without the argument."""
    gpu = Identity(1, 2, 1, "n", [torch.device("cuda", 1)])
    join("nccl", gpu, 90.0)
    assert torch.device("cuda", 1) == joined["device_id"]

    older: dict[str, object] = {}
    monkeypatch.setattr(
        strategies.dist, "init_process_group", lambda backend, timeout: older.update(backend=backend)
    )
    join("nccl", gpu, 90.0)
    assert {"backend": "nccl"} == older
