"""Which cores a rank is bound to."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from perf.training.binding import bind, choose, gpu_node, node_cores, parse_cores
from perf.training.identity import Identity
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


def test_a_rank_on_the_cpu_records_its_cores_and_is_not_bound(spec):
    """The record says where it ran, and why it was not bound."""
    before = os.sched_getaffinity(0)
    found = bind(spec, identity(devices=("cpu",)))

    assert before == os.sched_getaffinity(0)
    assert sorted(before) == found["core_ids"]
    assert (None, True) == (found["numa_binding"], "no side" in found["numa_reason"])
