"""Batches reach a rank whole, disjoint from others', shuffled anew; in mode synthetic from a ring of real ones."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import RandomSampler, TensorDataset

from perf.suite.plan import batches_an_epoch
from perf.training.loaders import (
    RING_BATCHES,
    LoaderPlan,
    Numbers,
    RingLoader,
    native_loader,
    set_epoch,
    shorten,
)

CPU = torch.device("cpu")
PLAN = LoaderPlan(batch_size=4, workers=0, rank=0, world_size=1, distributed=False, pin_memory=False, seed=5)


def numbered(samples: int) -> TensorDataset:
    """Samples that are their own number, with ten times it as target."""
    return TensorDataset(torch.arange(samples), torch.arange(samples) * 10)


def order(loader) -> list[int]:
    return [int(sample) for data, _ in loader for sample in data]


def ranks(samples: int, world_size: int, **changes):
    return [
        native_loader(
            numbered(samples),
            dataclasses.replace(PLAN, rank=rank, world_size=world_size, distributed=True, **changes),
        )
        for rank in range(world_size)
    ]


# --- torch's loader


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 9), st.integers(0, 5))
def test_ranks_share_an_epoch_without_overlap(samples, world_size, batch_size, epoch):
    """Every sample is delivered, none twice but for the sampler's padding, in as many batches as the plan says."""
    delivered = []
    for loader in ranks(samples, world_size, batch_size=batch_size):
        set_epoch(loader, epoch)
        delivered.append(order(loader))
        assert batches_an_epoch(samples, world_size, batch_size) == len(loader) == sum(1 for _ in loader)
    each = -(-samples // world_size)

    assert set(range(samples)) == set().union(*delivered)
    assert [each] * world_size == [len(rank) for rank in delivered]
    assert (
        each * world_size - samples == sum(len(set(rank)) for rank in delivered) - samples
        or samples < world_size
    )


def test_set_epoch_shuffles_every_rank_anew():
    """Each epoch has another order; without `set_epoch` the order would stay."""
    for loader in ranks(40, 2):
        first, again = order(loader), order(loader)
        set_epoch(loader, 1)

        assert first == again
        assert first != order(loader)


def test_ranks_of_one_seed_see_one_permutation():
    """All ranks shuffle with the common seed: their shares interleave to one permutation, another for another seed."""

    def whole(seed: int) -> list[int]:
        shares = [order(loader) for loader in ranks(20, 2, seed=seed)]
        return [sample for pair in zip(*shares, strict=True) for sample in pair]

    assert sorted(whole(1)) == list(range(20)) != whole(1)
    assert whole(1) == whole(1) != whole(2)


def test_a_single_rank_is_shuffled_anew_each_epoch_and_alike_for_one_seed():
    """Two members of a round train on the same batches, epoch by epoch."""

    def epochs(seed: int) -> list[list[int]]:
        loader = native_loader(numbered(30), dataclasses.replace(PLAN, seed=seed))
        found = []
        for epoch in range(3):
            set_epoch(loader, epoch)
            found.append(order(loader))
        return found

    assert epochs(1) == epochs(1) != epochs(2)
    assert 3 == len({tuple(epoch) for epoch in epochs(1)})
    assert [list(range(30))] * 3 == [sorted(epoch) for epoch in epochs(1)]


def test_the_loader_is_the_tutorials():
    """Shuffled, workers as planned and anew each epoch, pinned only where asked for, the last batch kept."""
    loader = native_loader(numbered(30), dataclasses.replace(PLAN, workers=1))

    assert (4, 1, False, False, False) == (
        loader.batch_size,
        loader.num_workers,
        loader.pin_memory,
        loader.drop_last,
        loader.persistent_workers,
    )
    assert isinstance(loader.sampler, RandomSampler)
    assert native_loader(numbered(30), dataclasses.replace(PLAN, pin_memory=True)).pin_memory


def test_setting_an_epoch_means_nothing_to_a_single_rank():
    """A loader without a distributed sampler draws on in its own sequence."""
    one, other = (native_loader(numbered(30), PLAN) for _ in range(2))
    set_epoch(one, 7)

    assert order(one) == order(other)


# --- data sets


@pytest.mark.parametrize("samples", [0, -1, 11, 10**9])
def test_a_data_set_is_not_shortened_to_what_it_lacks(samples):
    """The error says how many were asked for and how many there are."""
    with pytest.raises(ValueError, match=f"^{samples} samples asked for, the data set has 10$"):
        shorten(numbered(10), samples)


def test_a_data_set_is_shortened_to_its_first_samples():
    """None is all of them, and the very same data set."""
    data = numbered(10)

    assert data is shorten(data, None)
    assert [0, 1, 2] == [int(shorten(data, 3)[i][0]) for i in range(len(shorten(data, 3)))]
    assert 10 == len(shorten(data, 10))


@pytest.mark.parametrize("plan", [PLAN, dataclasses.replace(PLAN, distributed=True, rank=1, world_size=3)])
def test_numbers_are_those_of_the_samples_that_a_loader_would_deliver(plan):
    """The numbers of a data set come in the very batches in which the samples would."""
    data = numbered(9)

    assert 9 == len(Numbers(data))
    samples = [sample.tolist() for sample, _ in native_loader(data, plan)]
    assert samples == [batch.tolist() for batch in native_loader(Numbers(data), plan)]


@pytest.mark.parametrize("index", [-1, 9])
def test_numbers_have_none_outside_the_data_set(index):
    """A sampler that asks for a sample which is not there is found out, as by the images themselves."""
    with pytest.raises(IndexError, match=f"sample {index} asked for, the data set has 9"):
        Numbers(numbered(9))[index]


# --- the ring


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

    ring = RingLoader(native_loader(Counted(*numbered(100).tensors), PLAN), CPU)
    before = len(reads)
    for _ in range(3):
        list(ring)

    assert RING_BATCHES * 4 == before == len(reads)
