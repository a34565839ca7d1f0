"""Batches made in one go are the native loader's, with workers and without."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from perf.training.batched import BatchedLoader, Whole
from perf.training.datasets import Numbers, shorten
from perf.training.delivery import check_delivery
from perf.training.loaders import native_loader, set_epoch
from perf.training.ring import RingLoader
from perf.training.settings import NotInForce
from tests.perf.training.samples import CPU, PLAN, Turning, digits, epochs, plans, same

WORKERS = dataclasses.replace(PLAN, workers=1)
PERSISTENT = dataclasses.replace(PLAN, workers=1, persistent=True)
SECOND_OF_TWO = dataclasses.replace(PLAN, workers=1, rank=1, world_size=2, distributed=True)


@settings(deadline=None, max_examples=30)
@given(plans(), st.integers(1, 40), st.sampled_from([digits, Turning]))
def test_batches_equal_the_native_loaders(plan, samples, make):
    """For any plan order, types, shapes and values are those of samples taken one by one, partial batch included."""
    loader, native = BatchedLoader(make(samples), plan), native_loader(make(samples), plan)

    assert len(native) == len(loader)
    assert same(epochs(native), epochs(loader))


@pytest.mark.parametrize("plan", [WORKERS, PERSISTENT, SECOND_OF_TWO])
def test_workers_make_the_same_batches(plan):
    """Worker processes, new or persistent, deliver what one process does, in every epoch's own draw."""
    alone = native_loader(Turning(30), dataclasses.replace(plan, workers=0, persistent=False))

    assert same(epochs(alone), epochs(BatchedLoader(Turning(30), plan)))


def test_no_sample_is_fetched_by_itself():
    """The data set is asked for as many batches as the loader delivers and never for a single sample."""
    asked = []

    class Watched(Turning):
        def __getitem__(self, index):
            raise AssertionError(index)

        def batch(self, tensors, indices):
            asked.append(len(indices))
            return super().batch(tensors, indices)

    list(BatchedLoader(Watched(10), PLAN))

    assert [4, 4, 2] == asked


def test_a_shortened_set_delivers_its_first_samples():
    """Shortened, the set keeps its indices, its draw of each epoch and its reference."""
    plan = dataclasses.replace(PLAN, batch_size=3)
    short = shorten(Turning(30), 7)
    loader = BatchedLoader(short, plan)
    delivered = epochs(loader)

    assert same(epochs(native_loader(shorten(Turning(30), 7), plan)), delivered)
    assert [list(range(7))] * 2 == [sorted(int(i) for _, t in epoch for i in t) for epoch in delivered]
    check_delivery("batched", loader, CPU)


def test_numbers_are_counted_in_the_order_of_the_samples():
    """An audit of this loader counts the very samples that training would see."""
    counted = list(BatchedLoader(Numbers(Turning(10)), PLAN))

    assert [target.tolist() for _, target in BatchedLoader(Turning(10), PLAN)] == [
        numbers.tolist() for numbers in counted
    ]


def test_the_ring_takes_its_batches():
    """Mode synthetic takes whole batches of this loader."""
    ring = RingLoader(BatchedLoader(Turning(10), PLAN), CPU)

    assert [4, 4] == [len(target) for _, target in ring.batches]


def test_a_set_without_batches_is_refused():
    """The error names the data set and what it lacks, through a shortened set too."""
    data = TensorDataset(torch.arange(10))
    for dataset in (data, shorten(data, 3)):
        with pytest.raises(NotInForce, match="loader batched .* TensorDataset lacks batch "):
            BatchedLoader(dataset, PLAN)


def test_persistent_workers_need_workers():
    """What can't be in force is refused, as by the native loader."""
    with pytest.raises(
        NotInForce, match="the loader has no workers, so persistent workers can't be in force"
    ):
        BatchedLoader(digits(4), dataclasses.replace(PLAN, persistent=True))


def test_one_sample_is_the_sources_own():
    """Taken by its index, a sample comes from the data set as ever."""
    whole = Whole(digits(3))

    assert torch.equal(digits(3)[2][0], whole[2][0])
    assert 3 == len(whole)


def test_raw_data_are_taken_once_and_do_not_travel():
    """Raw data are asked for once a process; a copy for a spawned worker asks for its own."""
    taken = []

    class Watched(Numbers):
        def tensors(self):
            taken.append(1)
            return super().tensors()

    loader = BatchedLoader(Watched(digits(9)), PLAN)
    epochs(loader)

    assert [1] == taken
    assert loader.dataset.__getstate__()["_tensors"] is None
    turning = BatchedLoader(Turning(9), PLAN).dataset
    expected = turning.__getitems__([3, 1])
    copy = pickle.loads(pickle.dumps(turning))
    assert same([[expected]], [[copy.__getitems__([3, 1])]])


def test_an_epoch_is_told_to_sets_that_draw_nothing():
    """A data set without a draw of its own gets none."""
    set_epoch(BatchedLoader(Numbers(digits(4)), PLAN), 1, 1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="pinned memory is of a GPU")
def test_batches_are_pinned_where_asked_for():
    """On a GPU whole batches come in pinned memory."""
    for data, target in BatchedLoader(digits(9), dataclasses.replace(PLAN, pin_memory=True)):
        assert data.is_pinned()
        assert target.is_pinned()
