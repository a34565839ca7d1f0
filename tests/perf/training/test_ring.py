"""In mode synthetic a rank trains on a ring of real batches."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import TensorDataset, get_worker_info

from perf.training.loaders import LoaderPlan, native_loader
from perf.training.ring import (
    RING_BATCHES,
    RING_BYTES,
    RingLoader,
    divided,
    first_batches,
    parts_of,
    ring_size,
)
from tests.perf.training.helpers import separable
from tests.perf.training.samples import CPU, PLAN, numbered


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 120), st.integers(1, 9))
def test_the_ring_hands_out_real_batches(samples, batch_size):
    """Every batch is one of the data set's, whole, with its own targets; an epoch has as many as the real one."""
    loader = native_loader(numbered(samples), dataclasses.replace(PLAN, batch_size=batch_size))
    ring = RingLoader(loader, CPU)
    batches = list(ring)
    full = samples // batch_size

    assert len(loader) == len(ring) == len(batches)
    assert max(1, min(RING_BATCHES, full)) == len(ring.batches)
    for data, target in batches:
        assert (data * 10).tolist() == target.tolist()
        assert set(data.tolist()) <= set(range(samples))
        assert min(batch_size, samples) == len(set(data.tolist()))


def test_no_step_of_the_ring_meets_the_batch_that_it_has_just_seen():
    """Neighbouring batches differ, and after one turn the ring begins again."""
    ring = RingLoader(native_loader(numbered(100), PLAN), CPU)
    batches = [tuple(data.tolist()) for data, _ in ring]

    assert all(one != other for one, other in itertools.pairwise(batches))
    assert batches[:RING_BATCHES] == batches[RING_BATCHES : 2 * RING_BATCHES]
    assert 25 == len(batches)


def test_the_ring_reads_its_loader_once():
    """After it was filled no batch comes from the loader: its cost is not in the steps."""
    reads = []

    class Counted(TensorDataset):
        def __getitem__(self, index):
            reads.append(index)
            return super().__getitem__(index)

    ring = RingLoader(native_loader(Counted(*numbered(100).tensors), PLAN), CPU).filled()
    before = len(reads)
    for _ in range(3):
        list(ring)

    # One sample tells how large a batch is.
    assert RING_BATCHES * 4 + 1 == before == len(reads)


def test_a_rings_workers_are_at_work_before_it_is_looked_at():
    """The network is built meanwhile: no one need ask for a batch before the workers begin."""
    begun = torch.multiprocessing.get_context("fork").Event()

    class Telling(TensorDataset):
        def __getitem__(self, index):
            if get_worker_info() is not None:
                begun.set()
            return super().__getitem__(index)

    ring = RingLoader(
        native_loader(Telling(*numbered(100).tensors), dataclasses.replace(PLAN, workers=1)), CPU
    )

    assert begun.wait(30)
    assert RING_BATCHES == len(ring.batches)


def test_a_ring_without_a_batch_is_an_error():
    """A loader that makes no whole batch would leave every step without data."""
    loader = native_loader(numbered(3), PLAN)
    ring = RingLoader(loader, CPU)
    ring.__dict__["batches"] = []

    with pytest.raises(RuntimeError, match="no whole batch of 4"):
        ring.filled()


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("distributed", [False, True])
def test_a_ring_holds_the_first_batches_of_its_loader(workers, distributed):
    """Made by a loader that ends with them, they are the very batches that the real one would begin with."""
    plan = LoaderPlan(4, workers, 0, 1, distributed=distributed, pin_memory=False, seed=3)
    ring = RingLoader(native_loader(separable(26, 1), plan), CPU)
    expected = list(itertools.islice(native_loader(separable(26, 1), plan), 6))

    assert 6 == len(ring.batches)
    assert 7 == len(ring)
    for (data, target), (expected_data, expected_target) in zip(ring.batches, expected, strict=True):
        assert torch.equal(expected_data, data)
        assert torch.equal(expected_target, target)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_batches_that_are_made_in_parts_are_the_loaders(workers, parts):
    """Whoever makes a part of it, a batch holds the loader's samples in the loader's order."""
    plan = LoaderPlan(4, workers, 0, 1, distributed=False, pin_memory=False, seed=3)
    expected = list(native_loader(separable(14, 1), plan))
    found = list(first_batches(native_loader(separable(14, 1), plan), 4, CPU, parts))

    for (data, target), (expected_data, expected_target) in zip(found, expected, strict=True):
        assert torch.equal(expected_data, data)
        assert torch.equal(expected_target, target)


def test_every_worker_has_a_part_for_a_gpu():
    """Eight workers make two batches in four parts each, and eight batches whole, as on a CPU."""
    gpu = torch.device("cuda", 0)

    assert [4, 1, 2, 1] == [parts_of(*case, gpu) for case in ((8, 2), (8, 8), (3, 2), (0, 2))]
    assert 1 == parts_of(8, 2, CPU)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=70), st.integers(0, 20))
def test_a_divided_batch_is_whole(indices, parts):
    """In order, in at most so many runs, of which none is empty and none longer than the first."""
    runs = divided(indices, parts)

    assert indices == list(itertools.chain.from_iterable(runs))
    assert 1 <= len(runs) <= max(1, parts)
    assert all(1 <= len(run) <= len(runs[0]) for run in runs)


@given(st.integers(1, 2**22), st.integers(1, 512))
def test_a_ring_of_large_batches_is_short(numbers, batch_size):
    """Eight batches, or what lies within the limit, but two at least."""
    size = ring_size((torch.empty(numbers, device="meta"), 3), batch_size)

    assert 2 <= size <= RING_BATCHES
    assert size == 2 or size * 4 * numbers * batch_size <= RING_BYTES
    assert size == RING_BATCHES or (size + 1) * 4 * numbers * batch_size > RING_BYTES
