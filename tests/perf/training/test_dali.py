"""DALI delivers the native loader's batches, or the reason why it can't."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys

import pytest
import torch
from torch.utils.data import Dataset, TensorDataset
from torchvision import transforms

from perf.training import dali
from perf.training.datasets import Numbers, shorten
from perf.training.delivery import check_delivery
from perf.training.loaders import describe, make_loader, native_loader
from perf.training.ring import RingLoader
from perf.training.settings import NotInForce, Unavailable
from tests.perf.training.samples import CPU, PLAN, Turning, digits, epochs, same

THREADS = dataclasses.replace(PLAN, workers=1)

needs_dali = pytest.mark.skipif(
    importlib.util.find_spec("nvidia") is None or importlib.util.find_spec("nvidia.dali") is None,
    reason="nvidia.dali is not installed",
)


class Pictures(Dataset):
    """Random uint8 images of any shape and type, and their numbers as classes."""

    def __init__(self, *shape, dtype=torch.uint8):
        generator = torch.Generator().manual_seed(1)
        self.images = torch.randint(0, 256, shape, generator=generator).to(dtype)
        self.transform = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))]
        )

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.images[index].numpy()), index

    def tensors(self):
        return self.images, torch.arange(len(self))


def test_a_stack_without_dali_has_a_reason(monkeypatch):
    """Where nvidia.dali can't be imported the loader is unavailable, and the message says what to install."""
    monkeypatch.setitem(sys.modules, "nvidia.dali", None)
    with pytest.raises(Unavailable, match="this stack has no nvidia.dali; install nvidia-dali for its CUDA"):
        make_loader("dali", digits(4), THREADS, CPU)


@pytest.mark.parametrize("dataset", [Turning(4), shorten(Turning(4), 2), TensorDataset(torch.arange(4))])
def test_only_images_with_the_sources_transform_are_taken(dataset):
    """A data set that does anything but ToTensor and Normalize is none for the pipeline."""
    with pytest.raises(Unavailable, match="ToTensor, Normalize, .* this data set's is something else"):
        dali.normalization(dataset)


def test_a_resized_set_is_refused_with_its_steps():
    """A resize would be left out by the pipeline, so the message names what the transform does."""
    data = digits(4)
    data.transform = transforms.Compose([transforms.Resize(224), transforms.ToTensor()])
    with pytest.raises(Unavailable, match="this data set's is Resize, ToTensor"):
        dali.normalization(data)


def test_numbers_can_not_be_counted():
    """An audit is for the other loaders."""
    with pytest.raises(Unavailable, match="can't count samples"):
        dali.normalization(Numbers(digits(4)))


def test_the_normalization_is_the_data_sets_own():
    """Means and deviations are read from the transform, of a shortened set too."""
    assert ([0.1307], [0.3081]) == dali.normalization(shorten(digits(4), 2))


@pytest.mark.parametrize("shape", [(5, 6, 7), (5, 6, 7, 1), (5, 6, 7, 3), (5, 3, 6, 7)])
def test_pixels_are_given_channels_last(shape):
    """Gray images without a channel, and channels first or last, all become height, width, channels."""
    images, targets = dali.images_and_targets(Pictures(*shape))

    assert (5, 6, 7, 3 if 3 in shape else 1) == tuple(images.shape)
    assert list(range(5)) == targets.tolist()


@pytest.mark.parametrize(
    ("dataset", "found"),
    [
        (Turning(4), r"float32 \(4, 1, 3, 3\)$"),
        (Pictures(5, 6, 7, 3, dtype=torch.int16), r"int16 \(5, 6, 7, 3\), int64 \(5,\)$"),
        (Pictures(5, 6, 7, 4), r"uint8 \(5, 6, 7, 4\)"),
    ],
)
def test_other_raw_data_are_refused(dataset, found):
    """Fields, other types and other numbers of channels have a reason that says what was found."""
    with pytest.raises(
        Unavailable, match=f"for uint8 images with 1 or 3 channels; this data set has {found}"
    ):
        dali.images_and_targets(dataset)


@needs_dali
@pytest.mark.parametrize(
    "plan",
    [THREADS, dataclasses.replace(THREADS, workers=2, batch_size=7, distributed=True, rank=1, world_size=3)],
)
@pytest.mark.parametrize("make", [lambda: digits(26), lambda: Pictures(26, 6, 7, 3)])
def test_batches_equal_the_native_loaders(plan, make):
    """Order, types and shapes are the native loader's, epoch by epoch; values to float32's rounding."""
    native = native_loader(make(), dataclasses.replace(plan, workers=0))
    loader = make_loader("dali", make(), plan, CPU)

    assert len(native) == len(loader)
    assert same(epochs(native, 3), epochs(loader, 3), tolerance=1e-5)


@needs_dali
@pytest.mark.parametrize("taken", [1, 3])
def test_an_epoch_that_was_left_early_leaves_no_trace(taken):
    """What the pipeline had ready of an epoch that was left is not delivered in the next one."""
    loader, native = make_loader("dali", digits(40), THREADS, CPU), native_loader(digits(40), PLAN)
    for one in (loader, native):
        for _, _batch in zip(range(taken), one, strict=False):
            pass

    assert same([list(native)], [list(loader)], tolerance=1e-5)


@needs_dali
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_the_delivery_is_held_against_the_reference(batch_size):
    """The pipeline's own batches pass, for a batch size below the three samples too, and the order is untouched."""
    plan = dataclasses.replace(THREADS, batch_size=batch_size)
    loader = make_loader("dali", shorten(digits(9), 5), plan, CPU)
    check_delivery("dali", loader, CPU)
    native = native_loader(shorten(digits(9), 5), dataclasses.replace(plan, workers=0))

    assert same(epochs(native), epochs(loader), tolerance=1e-5)


@needs_dali
def test_batches_are_not_overwritten_by_later_ones():
    """The ring may keep batches: each has memory of its own."""
    ring = RingLoader(make_loader("dali", digits(40), THREADS, CPU), CPU)
    native = RingLoader(native_loader(digits(40), PLAN), CPU)

    assert same([native.batches], [ring.batches], tolerance=1e-5)


@needs_dali
def test_the_record_says_what_is_in_force():
    """Threads and batch size come from the pipeline."""
    facts = describe(make_loader("dali", digits(4), dataclasses.replace(THREADS, workers=2), CPU))

    assert {
        "loader": "dali",
        "workers": 2,
        "batch_size": 4,
        "prefetch_factor": 2,
        "device": "cpu",
    }.items() <= (facts.items())


@needs_dali
@pytest.mark.parametrize("change", [{"workers": 0}, {"persistent": True}, {"prefetch": 3}])
def test_what_dali_can_not_keep_is_refused(change):
    """No threads at all, persistent workers and another queue are not in force, so they are refused."""
    with pytest.raises(NotInForce, match="^loader dali "):
        make_loader("dali", digits(4), dataclasses.replace(THREADS, **change), CPU)
