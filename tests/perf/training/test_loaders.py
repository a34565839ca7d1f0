"""Batches reach a rank whole, disjoint from others', shuffled anew."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DistributedSampler, RandomSampler

from perf.suite.feeding import batches_an_epoch
from perf.training.datasets import shorten
from perf.training.delivery import check_delivery
from perf.training.loaders import describe, make_loader, native_loader, set_epoch
from perf.training.settings import NotInForce
from tests.perf.training.samples import CPU, PLAN, Turning, digits, epochs, numbered, same


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
        set_epoch(loader, epoch, 0)
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
        set_epoch(loader, 1, 0)

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

    def orders(seed: int) -> list[list[int]]:
        loader = native_loader(numbered(30), dataclasses.replace(PLAN, seed=seed))
        found = []
        for epoch in range(3):
            set_epoch(loader, epoch, 0)
            found.append(order(loader))
        return found

    assert orders(1) == orders(1) != orders(2)
    assert 3 == len({tuple(epoch) for epoch in orders(1)})
    assert [list(range(30))] * 3 == [sorted(epoch) for epoch in orders(1)]


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
    set_epoch(one, 7, 0)

    assert order(one) == order(other)


def test_persistent_workers_train_on_the_same_batches_as_new_ones():
    """In every epoch the order is the same with workers that live on, with new ones and with none."""
    loaders = [
        native_loader(numbered(20), dataclasses.replace(PLAN, **change))
        for change in ({}, {"workers": 1}, {"workers": 1, "persistent": True})
    ]
    none, new, persistent = ([order(loader) for _ in range(3)] for loader in loaders)

    assert none == new == persistent
    assert 3 == len({tuple(epoch) for epoch in none})


def test_persistent_workers_see_the_draw_of_each_epoch():
    """Workers that already run deliver the samples that `set_epoch` has drawn."""
    loader = native_loader(Turning(12), dataclasses.replace(PLAN, workers=1, persistent=True))

    assert same(epochs(native_loader(Turning(12), PLAN), 3), epochs(loader, 3))
    assert not same(epochs(loader, 1), [list(loader)])


@pytest.mark.parametrize(
    ("change", "persistent", "prefetch"),
    [
        ({}, False, None),
        ({"workers": 2}, False, 2),
        ({"workers": 1, "persistent": True}, True, 2),
        ({"workers": 1, "prefetch": 5}, False, 5),
    ],
)
def test_settings_of_workers_are_in_force(change, persistent, prefetch):
    """Persistent workers and the queue are as asked for; torch's own default is 2 batches a worker."""
    loader = native_loader(numbered(30), dataclasses.replace(PLAN, **change))

    assert (persistent, prefetch) == (loader.persistent_workers, loader.prefetch_factor)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"persistent": True}, "no workers, so persistent workers can't be in force"),
        ({"prefetch": 4}, "no workers, so prefetching 4 batches a worker can't be in force"),
        ({"workers": 1, "prefetch": 0}, "at least 1 batch ready, 0 were asked for"),
    ],
)
def test_settings_that_can_not_be_in_force_are_refused(change, reason):
    """What belongs to workers is refused without them, and so is an empty queue."""
    with pytest.raises(NotInForce, match=reason):
        native_loader(numbered(30), dataclasses.replace(PLAN, **change))


# --- loaders by name


@pytest.mark.parametrize("name", ["native", "batched", "resident"])
def test_loaders_by_name_have_the_same_face(name):
    """Each has what a session asks of it, and delivers the same epoch."""
    data = digits(10)
    loader = make_loader(name, data, PLAN, CPU)

    assert (3, 4, 0, None, False) == (
        len(loader),
        loader.batch_size,
        loader.num_workers,
        loader.prefetch_factor,
        loader.persistent_workers,
    )
    assert isinstance(loader.sampler, RandomSampler)
    assert 10 == len(loader.dataset)
    assert same(epochs(native_loader(data, PLAN)), epochs(loader))


def test_an_unknown_loader_is_refused():
    """The message names the loaders that there are."""
    with pytest.raises(NotInForce, match="loader 'fast' is not .*: native, batched, resident, dali$"):
        make_loader("fast", numbered(4), PLAN, CPU)


@pytest.mark.parametrize("name", ["native", "batched", "resident"])
@settings(deadline=None, max_examples=15)
@given(st.integers(4, 40), st.integers(2, 4), st.integers(1, 9))
def test_ranks_share_the_samples_of_every_loader(name, samples, world_size, batch_size):
    """Every sample comes once an epoch, no two ranks share one but for padding, and each epoch is shuffled anew."""
    plan = dataclasses.replace(PLAN, batch_size=batch_size, world_size=world_size, distributed=True)
    loaders = [
        make_loader(name, Turning(samples), dataclasses.replace(plan, rank=rank), CPU)
        for rank in range(world_size)
    ]
    found = []
    for epoch in range(2):
        shares = []
        for loader in loaders:
            set_epoch(loader, epoch, 0)
            shares.append([int(number) for _, target in loader for number in target])
        delivered = [number for share in shares for number in share]
        found.append(delivered)
        assert set(range(samples)) == set(delivered)
        assert -(-samples // world_size) * world_size - samples == len(delivered) - len(set(delivered))

    assert samples < 12 or found[0] != found[1]


@pytest.mark.parametrize(
    "change", [{}, {"distributed": True}, {"workers": 1, "persistent": True, "prefetch": 3}]
)
@pytest.mark.parametrize("name", ["native", "batched"])
def test_the_record_describes_the_object(name, change):
    """What is written down is read from the loader: name, class, sampler, workers and how they are started."""
    facts = describe(make_loader(name, digits(9), dataclasses.replace(PLAN, **change), CPU))

    assert {
        "loader": name,
        "class": "DataLoader" if name == "native" else "BatchedLoader",
        "batch_size": 4,
        "workers": change.get("workers", 0),
        "pin_memory": False,
        "prefetch_factor": change.get("prefetch"),
        "persistent_workers": "persistent" in change,
        "sampler": (DistributedSampler if "distributed" in change else RandomSampler).__name__,
        "start_method": torch.multiprocessing.get_start_method(),
    } == facts


def test_the_start_method_is_the_loaders_own():
    """A loader that starts its workers otherwise than torch does by default is recorded as it is."""
    loader = torch.utils.data.DataLoader(numbered(4), num_workers=1, multiprocessing_context="spawn")

    assert "spawn" == describe(loader)["start_method"]


@pytest.mark.parametrize("name", ["native", "batched", "resident"])
def test_every_loader_delivers_the_draw_of_its_epoch(name):
    """What is random in the samples is drawn for the epoch and seed that were told, of a shortened set too."""
    for samples in (None, 5):
        loader, twin = make_loader(name, shorten(Turning(8), samples), PLAN, CPU), Turning(8)
        for epoch, seed in ((0, 1), (3, 1), (3, 2)):
            twin.start_epoch(epoch, seed)
            set_epoch(loader, epoch, seed)
            for data, target in loader:
                for square, number in zip(data, target, strict=True):
                    assert torch.equal(twin.reference(int(number))[0], square)


@pytest.mark.parametrize("name", ["native", "batched", "resident"])
def test_no_loader_draws_from_the_generator_of_training(name):
    """Dropout is the same with every loader: none takes a number from torch's global generator."""
    loader = make_loader(name, digits(9), PLAN, CPU)
    before = torch.get_rng_state()
    check_delivery(name, loader, CPU)
    epochs(loader)

    assert torch.equal(before, torch.get_rng_state())
