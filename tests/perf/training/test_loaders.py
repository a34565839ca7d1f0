"""Batches reach a rank whole, disjoint from others', shuffled anew; in mode synthetic from a ring of real ones."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DistributedSampler, RandomSampler, TensorDataset

from perf.suite.plan import batches_an_epoch
from perf.training.datasets import Numbers, Shortened, shorten
from perf.training.delivery import check_delivery
from perf.training.loaders import LoaderPlan, describe, make_loader, native_loader, set_epoch
from perf.training.ring import RING_BATCHES, RING_BYTES, RingLoader, ring_size
from perf.training.settings import NotInForce
from tests.perf.training.helpers import separable
from tests.perf.training.samples import CPU, PLAN, Turning, digits, epochs, same


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


# --- the delivery, held against plain code


@pytest.mark.parametrize("samples", [1, 2, 3, 30])
@pytest.mark.parametrize("make", [digits, Turning])
@pytest.mark.parametrize("name", ["native", "batched", "resident"])
def test_right_samples_pass_and_leave_the_order_alone(name, make, samples):
    """Whatever the set's size, the check finds nothing, and the epoch after it is the one without it."""
    loader = make_loader(name, make(samples), PLAN, CPU)
    check_delivery(name, loader, CPU)

    assert same(epochs(native_loader(make(samples), PLAN)), epochs(loader))


def changed(batch):
    """Return a set of digits whose batches go through a function."""

    class Changed(type(digits(1))):
        def batch(self, tensors, indices):
            return batch(*super().batch(tensors, indices))

    data = digits(9)
    data.__class__ = Changed
    return data


@pytest.mark.parametrize("name", ["batched", "resident"])
@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (
            lambda x, y: (x * 0.3081 + 0.1307, y),
            r"input of sample 0 .*: values: largest difference [1-9]\S*,",
        ),
        (lambda x, y: (x[:, 0], y), r"input .*: shape: \(28, 28\), expected \(1, 28, 28\)$"),
        (lambda x, y: (x.double(), y), r"input .*: dtype: torch.float64, expected torch.float32$"),
        (lambda x, y: (x, y.int()), r"target .*: dtype: torch.int32, expected torch.int64$"),
        (lambda x, y: (x, y + 1), r"target .*: values: largest difference 1, allowed 0$"),
        (
            lambda x, y: (x.half().float(), y),
            r"input .*: values: largest difference 0\.000\d+, allowed 1e-05$",
        ),
        (lambda x, y: (x.flip(0), y), r"input of sample 0 .*: values"),
        (lambda x, y: (x[:2], y[:2]), r"input .*: shape: a batch of 3 samples has 2 rows$"),
        (lambda x, y: (x * float("nan"), y), r"input .*: values: largest difference nan"),
    ],
)
def test_wrong_batches_are_caught(name, batch, reason):
    """A forgotten normalization, another type, class, precision or order: each is named, with the loader and index."""
    with pytest.raises(NotInForce, match=rf"^loader {name}: {reason}"):
        check_delivery(name, make_loader(name, changed(batch), PLAN, CPU), CPU)


@pytest.mark.parametrize("name", ["native", "batched", "resident"])
def test_a_rotation_that_is_thrown_away_is_caught(name):
    """A sample that is turned and then handed on unturned is not the reference's."""

    class Unturned(Turning):
        def __getitem__(self, index):
            super().__getitem__(index)
            return self.squares[index], index

        def batch(self, tensors, indices):
            super().batch(tensors, indices)
            return tensors[0][indices], indices

    with pytest.raises(NotInForce, match=f"^loader {name}: input of sample 0 .*: values: largest difference"):
        check_delivery(name, make_loader(name, Unturned(9), PLAN, CPU), CPU)


def test_a_set_that_may_differ_by_more_says_so():
    """The data set's own tolerance holds, through a shortened set and whole batches."""
    data = changed(lambda x, y: (x + 0.01, y))
    data.tolerance = 0.02
    check_delivery("batched", make_loader("batched", shorten(data, 5), PLAN, CPU), CPU)
    data.tolerance = 0.001
    with pytest.raises(NotInForce, match="largest difference 0.01, allowed 0.001"):
        check_delivery("batched", make_loader("batched", shorten(data, 5), PLAN, CPU), CPU)


def test_a_batch_on_another_device_is_caught():
    """Data that were to be resident on a GPU and lie on the CPU are found."""
    loader = make_loader("resident", digits(5), PLAN, CPU)
    with pytest.raises(NotInForce, match="device: it lies on cpu, should lie on cuda"):
        check_delivery("resident", loader, torch.device("cuda"))


@pytest.mark.parametrize("dataset", [numbered(9), shorten(numbered(9), 4)])
def test_a_set_without_a_reference_is_refused(dataset):
    """There must be plain code to hold a delivery against."""
    with pytest.raises(NotInForce, match="loader native: the data set TensorDataset has no reference"):
        check_delivery("native", native_loader(dataset, PLAN), CPU)


# --- data sets


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

    # One sample tells how large a batch is.
    assert RING_BATCHES * 4 + 1 == before == len(reads)


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


@given(st.integers(1, 2**22), st.integers(1, 512))
def test_a_ring_of_large_batches_is_short(numbers, batch_size):
    """Eight batches, or what lies within the limit, but two at least."""
    size = ring_size((torch.empty(numbers, device="meta"), 3), batch_size)

    assert 2 <= size <= RING_BATCHES
    assert size == 2 or size * 4 * numbers * batch_size <= RING_BYTES
    assert size == RING_BATCHES or (size + 1) * 4 * numbers * batch_size > RING_BYTES
