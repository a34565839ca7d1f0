"""Data sets around data sets pass on what loaders ask for, and have no more samples than they say."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from perf.training.datasets import Numbers, Shortened, shorten
from perf.training.loaders import native_loader
from tests.perf.training.samples import PLAN, Turning, digits, numbered


def test_a_shortened_set_passes_on_what_loaders_ask_for():
    """Raw data, batches, reference, draw and transform are the set's own; numbers beyond its end are refused."""
    data = Turning(9)
    short = shorten(data, 3)
    short.start_epoch(4, 2)
    twin = Turning(9)
    twin.start_epoch(4, 2)

    assert torch.equal(twin.quarters, data.quarters)
    assert short.tensors()[0] is data.squares
    assert torch.equal(data.reference(2)[0], short.reference(2)[0])
    assert torch.equal(data[2][0], short.batch(short.tensors(), torch.tensor([2]))[0][0])
    assert (None, 1e-5) == (short.transform, short.tolerance)
    assert digits(3).transform.__class__ is Shortened(digits(3), 1).transform.__class__
    for ask in (
        short.__getitem__,
        short.reference,
        lambda i: short.batch(short.tensors(), torch.tensor([i])),
    ):
        for index in (3, -1):
            with pytest.raises(IndexError, match=f"sample {index} asked for, the data set has 3"):
                ask(index)


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
    numbers = Numbers(numbered(9))
    with pytest.raises(IndexError, match=f"sample {index} asked for, the data set has 9"):
        numbers.batch(numbers.tensors(), torch.tensor([index]))
