"""Batches made where the data lie are the native loader's, in its order."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from perf.training.datasets import Numbers, shorten
from perf.training.delivery import check_delivery
from perf.training.loaders import describe, native_loader
from perf.training.resident import ResidentLoader
from perf.training.ring import RingLoader
from perf.training.settings import NotInForce, Unavailable
from tests.perf.training.samples import CPU, PLAN, Turning, digits, epochs, plans, same


@settings(deadline=None, max_examples=30)
@given(plans(), st.integers(1, 40), st.sampled_from([digits, Turning]))
def test_batches_equal_the_native_loaders(plan, samples, make):
    """For any plan order, types, shapes and values are those of samples taken one by one, partial batch included."""
    loader, native = ResidentLoader(make(samples), plan, CPU), native_loader(make(samples), plan)

    assert len(native) == len(loader)
    assert same(epochs(native), epochs(loader))


def test_an_epoch_that_was_left_early_leaves_no_trace():
    """The next epoch has the native loader's order, whatever was taken of the last one."""
    loader, native = ResidentLoader(digits(20), PLAN, CPU), native_loader(digits(20), PLAN)
    for one in (loader, native):
        next(iter(one))

    assert same([list(native)], [list(loader)])


def test_workers_of_a_plan_mean_nothing():
    """A plan with workers gives the same batches, and the loader says that it has none."""
    loader = ResidentLoader(Turning(10), dataclasses.replace(PLAN, workers=3, pin_memory=True), CPU)

    assert (0, None, False) == (loader.num_workers, loader.prefetch_factor, loader.pin_memory)
    assert same(epochs(native_loader(Turning(10), PLAN)), epochs(loader))


@pytest.mark.parametrize("change", [{"persistent": True}, {"prefetch": 3}])
def test_what_only_workers_have_is_refused(change):
    """Persistent workers and prefetched batches can't be in force without workers."""
    with pytest.raises(NotInForce, match="loader resident has no workers"):
        ResidentLoader(Turning(10), dataclasses.replace(PLAN, **change), CPU)


def test_raw_data_are_taken_once():
    """The data set is asked for its tensors when the loader is made and in no epoch."""
    taken = []

    class Watched(Turning):
        def tensors(self):
            taken.append(1)
            return super().tensors()

    epochs(ResidentLoader(Watched(10), PLAN, CPU))

    assert [1] == taken


def test_the_record_says_where_how_much_lies():
    """Device and bytes come from the tensors: 784 bytes an image and 8 a class."""
    facts = describe(ResidentLoader(digits(10), PLAN, CPU))

    assert {
        "loader": "resident",
        "device": "cpu",
        "bytes": 7920,
        "start_method": None,
    }.items() <= facts.items()


def test_a_shortened_set_delivers_its_first_samples():
    """Shortened, the set keeps its indices and its reference."""
    loader = ResidentLoader(shorten(Turning(30), 7), PLAN, CPU)

    assert list(range(7)) == sorted(int(index) for _, target in loader for index in target)
    check_delivery("resident", loader, CPU)


def test_numbers_are_counted_in_the_order_of_the_samples():
    """An audit of this loader counts the very samples that training would see."""
    counted = list(ResidentLoader(Numbers(Turning(10)), PLAN, CPU))

    assert [target.tolist() for _, target in ResidentLoader(Turning(10), PLAN, CPU)] == [
        numbers.tolist() for numbers in counted
    ]


def test_the_ring_takes_its_batches():
    """Mode synthetic takes whole batches of this loader."""
    ring = RingLoader(ResidentLoader(Turning(10), PLAN, CPU), CPU)

    assert [4, 4] == [len(target) for _, target in ring.batches]


def test_a_set_without_batches_is_refused():
    """The error names the data set and what it lacks."""
    with pytest.raises(NotInForce, match="loader resident .* TensorDataset lacks batch "):
        ResidentLoader(TensorDataset(torch.arange(10)), PLAN, CPU)


def test_data_that_have_no_room_are_a_reason():
    """A device that is too small makes the loader unavailable; the message has the set's size."""

    class Large(Turning):
        def tensors(self):
            class Huge:
                numel, element_size = (lambda self: 10**12), (lambda self: 4)

                def to(self, device):
                    raise torch.cuda.OutOfMemoryError

            return (Huge(),)

    with pytest.raises(Unavailable, match="has 4000000000000 bytes and cpu has no room"):
        ResidentLoader(Large(3), PLAN, CPU)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_batches_are_made_on_the_gpu():
    """On a GPU inputs and targets lie there and are the native loader's."""
    device = torch.device("cuda")
    loader = ResidentLoader(digits(10), PLAN, device)
    delivered = epochs(loader)

    assert {"cuda"} == {part.device.type for batches in delivered for batch in batches for part in batch}
    check_delivery("resident", loader, device)
    on_cpu = [[tuple(part.cpu() for part in batch) for batch in batches] for batches in delivered]
    assert same(epochs(native_loader(digits(10), PLAN)), on_cpu, tolerance=1e-6)
