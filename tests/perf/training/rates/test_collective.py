from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from models.interface import load_workload
from perf.training.rates import collective
from perf.training.rates.collective import WORKLOADS, all_reduces, buckets, gradient_bytes
from perf.training.rates.timing import Timer
from perf.training.settings import NotInForce
from perf.workloads import WORKLOADS as KNOWN

CPU = torch.device("cpu")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_buckets_are_those_that_ddp_makes(workload):
    """torch's own assignment of a network's gradients, last layer first, at the limits that DDP gives it."""
    with torch.device("meta"):
        model = load_workload(workload).build_model()
    gradients = list(reversed(list(model.parameters())))
    # The function is DDP's own; it has no public name.
    assigned, _ = dist._compute_bucket_assignment_by_size(
        gradients, [dist._DEFAULT_FIRST_BUCKET_BYTES, 25 * 2**20]
    )
    expected = [sum(4 * gradients[i].numel() for i in bucket) for bucket in assigned]

    # torch sorts buckets by their first member, which is the order in which they were opened.
    assert expected == buckets(gradient_bytes(workload))


def test_buckets_are_those_that_a_launch_recorded():
    """DDP's own account on an H100, torch 2.11 (docs/measurements/2026-11-28-h100-whole), after its first step."""
    assert [4724264, 75264] == buckets(gradient_bytes("mnist_cnn"))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_gradients_are_the_workload_s(workload):
    """Four bytes for each of its parameters."""
    assert 4 * KNOWN[workload].parameters == sum(gradient_bytes(workload))


@given(st.lists(st.integers(1, 100), max_size=60), st.integers(1, 200), st.integers(1, 200))
def test_buckets_lose_nothing_and_are_full(sizes, first, cap):
    """They hold every gradient; each but the last reaches its limit."""
    found = buckets(sizes, first, cap)

    assert sum(sizes) == sum(found)
    assert all(size >= (cap if place else first) for place, size in enumerate(found[:-1]))


def test_ranks_that_sum_wrongly_are_an_error(process_group, monkeypatch):
    """An all-reduce that adds nothing up is as fast as can be."""
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)

    with pytest.raises(NotInForce, match=r"over 2 ranks gave 1, not 2"):
        next(all_reduces(CPU, Timer(lambda: None, 0.01), ("mnist_cnn",)))


def test_bus_bandwidth_counts_what_passes_a_link(process_group, monkeypatch):
    """2 (n - 1) / n of the bytes: nothing for one rank, their number for two."""
    monkeypatch.setattr(Timer, "repeat", lambda self, work: [work() is None and 1.0])
    monkeypatch.setattr(collective, "gradient_bytes", lambda workload: [40, 80])
    (alone,) = all_reduces(CPU, Timer(lambda: None, 1.0), ("mnist_cnn",))
    reduce = dist.all_reduce

    class Doubled:
        """A second rank that has the same gradients."""

        def __init__(self, gradient):
            self.gradient, self.handle = gradient, reduce(gradient, async_op=True)

        def wait(self):
            self.handle.wait()
            self.gradient *= 2

    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(dist, "all_reduce", lambda gradient, async_op: Doubled(gradient))
    (two,) = all_reduces(CPU, Timer(lambda: None, 1.0), ("mnist_cnn",))

    assert ("all_reduce_mnist_cnn", 0.0) == (alone[0], alone[1].value)
    assert (120.0, [120]) == (two[1].value, two[1].about["buckets"])
