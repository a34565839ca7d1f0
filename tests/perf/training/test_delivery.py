"""What a loader delivers is held against the data set's plain code."""

from __future__ import annotations

import pytest
import torch

from perf.training.datasets import shorten
from perf.training.delivery import check_delivery
from perf.training.loaders import make_loader, native_loader
from perf.training.settings import NotInForce
from tests.perf.training.samples import CPU, PLAN, Turning, digits, epochs, numbered, same


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
