"""Where MNIST's images come from, what they are called, and that samples are torchvision's own."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision import datasets, transforms

from models import mnist_data, mnist_generated
from models.errors import DataError
from models.idx import IdxError, file_md5, read_idx, write_idx
from perf import data as staging

NOWHERE = "/nonexistent"

WriteSet = Callable[..., Path]  # the fixture in conftest.py

needs_debian = pytest.mark.skipif(
    not os.path.isdir(mnist_data.DEBIAN_FOLDER),
    reason="Debian's package dataset-fashion-mnist is not installed",
)


def known_as(monkeypatch: pytest.MonkeyPatch, kind: str, folder: Path) -> None:
    """Let a small set pass for a published one: its sums take the place of the published sums."""
    md5s = {path.name: file_md5(read_idx(str(path))) for path in sorted(folder.iterdir())}
    monkeypatch.setitem(mnist_data.KNOWN, kind, md5s)


# The order of places


def test_the_data_root_comes_first(write_set: WriteSet, tmp_path: Path) -> None:
    """With a data root neither Debian's files nor the cache are looked at."""
    root, debian = write_set(tmp_path / "root"), write_set(tmp_path / "debian")
    assert str(root) == mnist_data.find(str(root), str(tmp_path / "cache"), str(debian)).folder
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("inside", [".", "MNIST/raw"])
def test_both_places_and_packings_under_a_data_root_are_read(
    write_set: WriteSet, tmp_path: Path, inside: str, suffix: str
) -> None:
    """The files may lie in the root or where torchvision puts them, plain or gzip, with equal contents."""
    write_set(tmp_path / inside, suffix)
    dataset = mnist_data.load(mnist_data.find(str(tmp_path), NOWHERE, NOWHERE), train=True)
    images, labels = mnist_generated.draw(60, 1 + len("train"))
    assert images.tolist() == dataset.data.tolist()
    assert labels.tolist() == dataset.targets.tolist()


def test_a_data_root_without_the_files_is_an_error_that_names_every_place(tmp_path: Path) -> None:
    """Nothing else is tried in silence; the message lists both folders, what they lack and what to do."""
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "t10k-labels-idx1-ubyte.gz").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        mnist_data.find(str(tmp_path), str(tmp_path / "cache"))
    message = str(caught.value)
    missing = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte"
    assert f"'{tmp_path}' lacks {missing}, t10k-labels-idx1-ubyte;" in message
    assert f"'{raw}' lacks {missing}." in message
    assert "perf.data --root" in message
    assert not (tmp_path / "cache").exists()


def test_a_data_root_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """A mistyped data root is no permission to train on something else."""
    with pytest.raises(DataError, match="the data root '/no/data' doesn't hold MNIST: no folder '/no/data'"):
        mnist_data.find("/no/data", str(tmp_path))


def test_an_empty_data_root_is_not_the_current_folder(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset variable in a site file must not pick up files that happen to lie in the current folder."""
    monkeypatch.chdir(write_set(tmp_path))
    with pytest.raises(DataError, match="the data root is empty"):
        mnist_data.find("", str(tmp_path))


def test_debians_files_come_before_generated_ones(write_set: WriteSet, tmp_path: Path) -> None:
    """Without a data root Debian's folder is used, and nothing is generated."""
    debian = write_set(tmp_path / "debian", ".gz")
    assert str(debian) == mnist_data.find(None, str(tmp_path / "cache"), str(debian)).folder
    assert not (tmp_path / "cache").exists()


def test_an_incomplete_package_is_passed_over(generated: Path, write_set: WriteSet, tmp_path: Path) -> None:
    """Nobody asked for Debian's files, so a part of them doesn't stop the run."""
    debian = write_set(tmp_path / "debian", ".gz")
    (debian / "t10k-labels-idx1-ubyte.gz").unlink()
    assert "generated" == mnist_data.find(None, str(generated.parent), str(debian)).kind


def test_generated_images_are_the_last_resort_and_are_called_so(generated: Path) -> None:
    """Without anything else the stand-in is used, described as what it is."""
    source = mnist_data.find(None, str(generated.parent), NOWHERE)
    assert ("generated", str(generated)) == (source.kind, source.folder)
    assert "made by this suite" in source.description
    assert (60_000, 10_000) == (len(mnist_data.load(source, True)), len(mnist_data.load(source, False)))


# What a set is called


@needs_debian
@pytest.mark.parametrize("root", [None, mnist_data.DEBIAN_FOLDER])
def test_fashion_mnist_is_called_fashion_mnist_wherever_it_lies(root: str | None, tmp_path: Path) -> None:
    """Debian's files are known by their sums, as a data root too; they are never MNIST."""
    source = mnist_data.find(root, str(tmp_path))
    dataset = mnist_data.load(source, train=False)
    assert "fashion-mnist" == source.kind
    assert "T-shirt/top" == dataset.classes[0]
    assert [1_000] * 10 == torch.bincount(dataset.targets).tolist()


def test_published_sums_make_a_set_mnist(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four files with the sums of MNIST are MNIST, plain or gzip, with one fingerprint."""
    known_as(monkeypatch, "mnist", write_set(tmp_path / "plain"))
    sources = [
        mnist_data.find(str(write_set(tmp_path / name, suffix)), NOWHERE)
        for name, suffix in (("plain", ""), ("gz", ".gz"))
    ]
    assert ["mnist", "mnist"] == [source.kind for source in sources]
    assert sources[0].fingerprint == sources[1].fingerprint
    assert "0 - zero" == mnist_data.load(sources[1], train=True).classes[0]


def test_images_of_another_set_under_mnists_labels_are_refused(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels alone don't make MNIST: images with another sum are an error on loading, not a data set."""
    folder = write_set(tmp_path)
    known_as(monkeypatch, "mnist", folder)
    images = read_idx(str(folder / "train-images-idx3-ubyte"))
    images[5, 5, 5] ^= 1
    write_idx(str(folder / "train-images-idx3-ubyte"), images)
    source = mnist_data.find(str(tmp_path), NOWHERE)
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte' has md5 .*damaged or mixed from two sets"):
        mnist_data.load(source, train=True)


def test_labels_of_two_sets_are_not_mnist(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training labels of MNIST beside other validation labels are an unverified set."""
    folder = write_set(tmp_path / "a")
    known_as(monkeypatch, "mnist", folder)
    shutil.copy(write_set(tmp_path / "b", seed=7) / "t10k-labels-idx1-ubyte", folder)
    assert mnist_data.UNVERIFIED == mnist_data.find(str(folder), NOWHERE).kind


def test_an_unknown_set_is_unverified_and_its_fingerprint_covers_the_images(
    write_set: WriteSet, tmp_path: Path
) -> None:
    """A set that nobody published gets an honest name, and one changed pixel another fingerprint."""
    folder = write_set(tmp_path)
    before = mnist_data.find(str(folder), NOWHERE)
    path = str(folder / "t10k-images-idx3-ubyte")
    images = read_idx(path)
    images[-1, 0, 0] ^= 1
    write_idx(path, images)
    after = mnist_data.find(str(folder), NOWHERE)
    assert [mnist_data.UNVERIFIED] * 2 == [before.kind, after.kind]
    assert before.fingerprint != after.fingerprint


def test_generated_files_under_a_data_root_are_not_mnist(generated: Path) -> None:
    """Naming the generated folder as data root doesn't turn it into MNIST."""
    assert mnist_data.UNVERIFIED == mnist_data.find(str(generated), NOWHERE).kind


def test_the_published_sums_are_the_ones_that_staging_checks() -> None:
    """The worker and the driver keep the same facts twice, because neither may import the other."""
    published = mnist_data.KNOWN["mnist"]
    assert {archive.plain_name: archive.plain_md5 for archive in staging.ARCHIVES} == published
    assert set(mnist_generated.file_names()) == set(published) == set(mnist_data.KNOWN["fashion-mnist"])


# Checks on reading


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"])
def test_damage_in_the_generated_set_is_seen(generated: Path, tmp_path: Path, name: str) -> None:
    """A changed byte in the cache is an error that says how to get a good set."""
    folder = tmp_path / mnist_generated.FOLDER
    folder.mkdir()
    for path in generated.iterdir():
        (folder / path.name).symlink_to(path)
    content = bytearray((generated / name).read_bytes())
    content[-1] ^= 1
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    source = mnist_data.find(None, str(tmp_path), NOWHERE)
    with pytest.raises(DataError, match=rf"{name}' has md5 .*Remove the folder; it is then made anew"):
        mnist_data.load(source, train=True)


def test_a_generated_set_that_lost_a_file_is_an_error(generated: Path, tmp_path: Path) -> None:
    """A cache that somebody cleaned in part is named, with the remedy."""
    (tmp_path / mnist_generated.FOLDER).mkdir()
    with pytest.raises(DataError, match=r"lacks train-images-idx3-ubyte.*Remove the folder"):
        mnist_data.find(None, str(tmp_path), NOWHERE)


def test_wrong_counts_are_refused(write_set: WriteSet, tmp_path: Path) -> None:
    """Fewer images than labels are an error that states both shapes."""
    folder = write_set(tmp_path)
    path = str(folder / "train-images-idx3-ubyte")
    write_idx(path, read_idx(path)[:-1])
    with pytest.raises(IdxError, match=r"has shape \(59, 28, 28\), expected \(60, 28, 28\)"):
        mnist_data.find(str(folder), NOWHERE)


def test_a_label_above_nine_is_refused(write_set: WriteSet, tmp_path: Path) -> None:
    """A set with more classes (EMNIST letters) is named with the label and its place."""
    folder = write_set(tmp_path)
    path = str(folder / "train-labels-idx1-ubyte")
    labels = read_idx(path)
    labels[[17, 40]] = 26
    write_idx(path, labels)
    with pytest.raises(DataError, match="has label 26 at position 17, expected 0 to 9"):
        mnist_data.load(mnist_data.find(str(folder), NOWHERE), train=True)


def test_a_damaged_label_file_is_named_at_once(write_set: WriteSet, tmp_path: Path) -> None:
    """A cut gzip file is an error in `find`, before a network is built."""
    folder = write_set(tmp_path, ".gz")
    path = folder / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(IdxError, match=r"t10k-labels-idx1-ubyte\.gz' is cut short"):
        mnist_data.find(str(folder), NOWHERE)


# The data set


@pytest.mark.parametrize("train", [True, False])
def test_samples_equal_torchvisions(write_set: WriteSet, tmp_path: Path, train: bool) -> None:
    """Every sample is what torchvision's own MNIST gives for the same files and the sources' transform."""
    write_set(tmp_path / "MNIST" / "raw")
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    expected = datasets.MNIST(str(tmp_path), train=train, download=False, transform=transform)
    actual = mnist_data.load(mnist_data.find(str(tmp_path), NOWHERE), train)
    assert len(expected) == len(actual)
    for (image, target), (own_image, own_target) in zip(expected, actual, strict=False):
        assert (image.dtype, image.shape, target) == (own_image.dtype, own_image.shape, own_target)
        assert torch.equal(image, own_image)
        assert type(target) is type(own_target)


def test_per_sample_work_is_torchvisions_code() -> None:
    """The data set has no way of its own to fetch a sample: what is timed is torchvision."""
    assert datasets.MNIST.__getitem__ is mnist_data.Mnist.__getitem__
    assert datasets.MNIST.__len__ is mnist_data.Mnist.__len__


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 29), max_size=40))
def test_batches_equal_samples_taken_one_by_one(indices: list[int]) -> None:
    """Whole batches are ToTensor and Normalize to the last bit, for any indices, repeated or none; raw data stay."""
    transform = transforms.Compose(
        [transforms.ToTensor(), transforms.Normalize(mnist_data.MEAN, mnist_data.DEVIATION)]
    )
    images, labels = mnist_generated.draw(30, 3)
    dataset = mnist_data.Mnist(images.copy(), labels, train=True, transform=transform)
    values, targets = dataset.batch(dataset.tensors(), torch.tensor(indices, dtype=torch.int64))
    assert (torch.float32, (len(indices), 1, 28, 28)) == (values.dtype, tuple(values.shape))
    assert (torch.int64, [dataset[index][1] for index in indices]) == (targets.dtype, targets.tolist())
    for index, value in zip(indices, values, strict=True):
        assert torch.equal(dataset[index][0], value)
    assert np.array_equal(images, dataset.data.numpy())


def test_raw_data_are_bytes_and_classes() -> None:
    """The tensors are the set's own memory: uint8 images and int64 classes."""
    dataset = mnist_data.Mnist(*mnist_generated.draw(10, 3), train=True)
    images, targets = dataset.tensors()
    assert (torch.uint8, (10, 28, 28)) == (images.dtype, tuple(images.shape))
    assert (torch.int64, (10,)) == (targets.dtype, tuple(targets.shape))
    assert dataset.data.data_ptr() == images.data_ptr()


def test_the_reference_is_the_formula() -> None:
    """A pixel p becomes (p / 255 - 0.1307) / 0.3081, in every epoch; samples that aren't there are an error."""
    images, labels = np.zeros((2, 28, 28), np.uint8), np.array([3, 7], np.uint8)
    images[1, 2, 5] = 51
    dataset = mnist_data.Mnist(images, labels, train=True)
    dataset.start_epoch(3, 4)
    values, target = dataset.reference(1)
    assert (torch.float32, (1, 28, 28)) == (values.dtype, tuple(values.shape))
    assert (torch.int64, 7) == (target.dtype, int(target))
    assert pytest.approx((0.2 - 0.1307) / 0.3081, rel=1e-6) == float(values[0, 2, 5])
    assert pytest.approx(-0.1307 / 0.3081, rel=1e-6) == float(values[0, 0, 0])
    with pytest.raises(IndexError):
        dataset.reference(2)


def test_the_data_set_goes_to_spawned_loader_workers(write_set: WriteSet, tmp_path: Path) -> None:
    """A pickled copy has the same samples; loader workers that are spawned get one."""
    dataset = mnist_data.load(mnist_data.find(str(write_set(tmp_path)), NOWHERE), train=False)
    copy = pickle.loads(pickle.dumps(dataset))
    assert torch.equal(dataset[3][0], copy[3][0])
    assert f"Kind: {mnist_data.UNVERIFIED}" in repr(copy)


def test_arrays_are_taken_as_they_are() -> None:
    """Without a transform a sample is the PIL image itself."""
    images, labels = mnist_generated.draw(10, 3)
    image, target = mnist_data.Mnist(images, labels, train=True)[4]
    assert (images[4].tolist(), int(labels[4])) == (np.asarray(image).tolist(), target)


def test_provenance_is_plain_and_complete(write_set: WriteSet, tmp_path: Path) -> None:
    """A record keeps kind, description, folder, fingerprint and samples, as JSON."""
    source = mnist_data.find(str(write_set(tmp_path)), NOWHERE)
    kept = json.loads(json.dumps(mnist_data.provenance(source, 60)))
    assert {
        "kind": mnist_data.UNVERIFIED,
        "description": source.description,
        "folder": str(tmp_path),
        "fingerprint": source.fingerprint,
        "samples": 60,
    } == kept


def test_a_gzip_file_with_another_time_stamp_is_the_same_data(
    write_set: WriteSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repacked files (as Debian's are) keep their kind: sums are taken of what is inside."""
    folder = write_set(tmp_path / "plain")
    known_as(monkeypatch, "mnist", folder)
    packed = tmp_path / "packed"
    packed.mkdir()
    for path in folder.iterdir():
        (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 1, mtime=1_591_315_200))
    assert "mnist" == mnist_data.find(str(packed), NOWHERE).kind
