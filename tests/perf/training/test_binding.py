"""Which cores a rank is bound to."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from perf.training.binding import bind, choose, gpu_node, node_cores, parse_cores, tie
from perf.training.identity import Identity
from perf.training.settings import NotInForce
from tests.perf.training.helpers import make_spec

TWO = {0: {0, 1, 2, 3}, 1: {4, 5, 6, 7}}
ALL = set(range(8))


def identity(local_rank=0, devices=("cuda",)):
    """Return who a rank is."""
    return Identity(local_rank, 2, local_rank, "n1", [torch.device(d) for d in devices])


@pytest.fixture
def spec(tmp_path):
    """Two ranks that were promised four cores each."""
    return make_spec(tmp_path, ranks_per_node=2, cores=8)


def test_a_rank_is_bound_to_the_node_of_its_gpu(spec):
    """Each of two GPUs on two NUMA nodes has its own cores."""
    assert [(0, ""), (1, "")] == [choose(spec, TWO, ALL, [0, 1], identity(rank)) for rank in (0, 1)]


@pytest.mark.parametrize(
    ("nodes", "allowed", "gpus", "reason"),
    [
        (TWO, ALL, [], "no side"),
        ({0: ALL}, ALL, [0, 0], "one NUMA node"),
        (TWO, ALL, [None, 1], "does not say"),
        (TWO, ALL, [7, 1], "does not say"),
        (TWO, ALL, [0, 0], "has 4 of the allowed cores, its 2 ranks were promised 8"),
        (TWO, {0, 1, 4, 5, 6, 7}, [0, 1], "has 2 of the allowed cores, its 1 ranks were promised 4"),
    ],
)
def test_a_rank_is_left_alone_where_binding_would_cost_it_cores(spec, nodes, allowed, gpus, reason):
    """The promise of cores is kept, and the reason is told."""
    node, said = choose(spec, nodes, allowed, gpus, identity())

    assert None is node
    assert reason in said


def test_nodes_and_gpus_are_read_from_the_system(tmp_path, monkeypatch):
    """Lists of cores, nodes without cores, the place of a card on the bus, and firmware that does not say."""
    for name, text in (("node0", "0-1,4\n"), ("node1", "2-3\n"), ("node2", "\n")):
        (tmp_path / "sys/devices/system/node" / name).mkdir(parents=True)
        (tmp_path / "sys/devices/system/node" / name / "cpulist").write_text(text)
    card = tmp_path / "sys/bus/pci/devices/0001:1a:00.0"
    card.mkdir(parents=True)
    properties = SimpleNamespace(pci_domain_id=1, pci_bus_id=0x1A, pci_device_id=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)

    assert {0: {0, 1, 4}, 1: {2, 3}} == node_cores(str(tmp_path))
    assert None is gpu_node(0, str(tmp_path))
    (card / "numa_node").write_text("1\n")
    assert 1 == gpu_node(0, str(tmp_path))
    (card / "numa_node").write_text("-1\n")
    assert None is gpu_node(0, str(tmp_path))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace())
    assert None is gpu_node(0, str(tmp_path))


def test_what_is_no_list_of_cores_is_empty():
    """A file in another form binds nobody anywhere."""
    assert [set(), set(), {3}] == [parse_cores(text) for text in ("", "a-b", "3,x,4-")]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs 2 cores")
def test_ranks_are_tied_to_cores_beside_each_other(tmp_path):
    """Each of two ranks on one core of its own; the record says on which, and that it was asked for."""
    before = sorted(os.sched_getaffinity(0))
    spec = make_spec(tmp_path, ranks_per_node=2, cores=2, tied_cores=1)
    try:
        found = [(tie(spec, identity(rank, ("cpu",))), os.sched_setaffinity(0, before))[0] for rank in (0, 1)]
    finally:
        os.sched_setaffinity(0, before)

    assert [[before[0]], [before[1]]] == [one["core_ids"] for one in found]
    assert {"tied to 1 cores, as was asked for"} == {one["numa_reason"] for one in found}


def test_a_rank_that_can_not_be_tied_is_an_error(tmp_path):
    """More cores than are allowed: the variant would be measured under a false name."""
    allowed = len(os.sched_getaffinity(0))
    with pytest.raises(NotInForce, match=f"{allowed} are allowed on n1. Allow more"):
        tie(make_spec(tmp_path, tied_cores=allowed + 1), identity(devices=("cpu",)))
    assert allowed == len(os.sched_getaffinity(0))


def test_a_rank_on_the_cpu_records_its_cores_and_is_not_bound(spec):
    """The record says where it ran, and why it was not bound."""
    before = os.sched_getaffinity(0)
    found = bind(spec, identity(devices=("cpu",)))

    assert before == os.sched_getaffinity(0)
    assert sorted(before) == found["core_ids"]
    assert (None, True) == (found["numa_binding"], "no side" in found["numa_reason"])
