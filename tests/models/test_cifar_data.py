"""Where CIFAR-100's images come from, what they are called, and that samples are torchvision's own."""

from __future__ import annotations

import collections
import functools
import hashlib
import json
import os
import pickle
import pickletools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from models import cifar_data, cifar_generated, cifar_pickle
from models.cifar_data import Cifar
from models.errors import DataError

NOWHERE = "/nonexistent"
SMALL = {"train": 30, "test": 10}


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sets have 30 and 10 images here. Sums are hashed anew: a test rewrites files within one tick of a clock."""
    monkeypatch.setattr(cifar_data, "SAMPLES", SMALL)
    monkeypatch.setattr(cifar_generated, "SAMPLES", SMALL)
    monkeypatch.setattr(cifar_data, "_file_md5", cifar_data._file_md5.__wrapped__)


def write_set(folder: Path, seed: int = 1) -> Path:
    """Write three small files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in SMALL.items():
        images, labels = cifar_generated.draw(count, seed + len(part))
        (folder / part).write_bytes(cifar_generated.part_file(part, images, labels))
    (folder / "meta").write_bytes(cifar_generated.meta_file())
    return folder


def entry(count: int = SMALL["test"], **changes: Any) -> dict[str, Any]:
    """The dictionary in a file, with some entries changed."""
    images, labels = cifar_generated.draw(count, 1)
    return {"data": images, "fine_labels": labels.tolist(), **changes}


def load_test_part(folder: Path) -> Cifar:
    """Find the set under a data root and load its smaller part."""
    return cifar_data.load(cifar_data.find(str(folder), NOWHERE), train=False)


def publish(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let a small set pass for CIFAR-100: its sums take the place of the published sums."""
    sums = {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in cifar_generated.FILES}
    monkeypatch.setattr(cifar_data, "PUBLISHED", sums)


# Places and names


@pytest.mark.parametrize("inside", [".", "cifar-100-python"])
def test_both_places_under_a_data_root_are_read(tmp_path: Path, inside: str) -> None:
    """The files may lie in the root or in the archive's folder; the cache is not looked at."""
    write_set(tmp_path / "root" / inside)
    source = cifar_data.find(str(tmp_path / "root"), str(tmp_path / "cache"))
    dataset = cifar_data.load(source, train=True)
    images, labels = cifar_generated.draw(30, 1 + len("train"))
    assert images.reshape(-1, 3, 32, 32).tolist() == dataset.tensors()[0].tolist()
    assert labels.tolist() == dataset.targets
    assert ("mosaic_00", 100) == (dataset.classes[0], len(dataset.classes))
    assert not (tmp_path / "cache").exists()


def test_a_data_root_without_the_files_is_an_error_that_names_every_place(tmp_path: Path) -> None:
    """A part of the set is no set, also where MNIST lies, or folders that are called train and test."""
    (tmp_path / "MNIST" / "raw").mkdir(parents=True)
    (tmp_path / "train").mkdir()
    (tmp_path / "meta").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        cifar_data.find(str(tmp_path), str(tmp_path / "cache"))
    message = str(caught.value)
    assert f"'{tmp_path}' lacks train, test; no folder '{tmp_path}/cifar-100-python'. Unpack" in message
    assert "eb9058c3a382ffc7106e4002c42a8d85" in message
    assert not (tmp_path / "cache").exists()


def test_a_data_root_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """A misspelt root is not taken for one that serves other workloads."""
    with pytest.raises(DataError, match="no folder"):
        cifar_data.find(str(tmp_path / "nowhere"), str(tmp_path / "cache"))


def test_an_empty_data_root_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset variable must not pick up files that happen to lie in the current folder."""
    monkeypatch.chdir(write_set(tmp_path))
    with pytest.raises(DataError, match="the data root is empty"):
        cifar_data.find("", str(tmp_path))


def test_the_published_sums_are_torchvisions() -> None:
    """The sums that make a set CIFAR-100 are those that torchvision checks."""
    published = {
        **dict(datasets.CIFAR100.train_list),
        **dict(datasets.CIFAR100.test_list),
        datasets.CIFAR100.meta["filename"]: datasets.CIFAR100.meta["md5"],
    }
    assert published == cifar_data.PUBLISHED
    assert set(cifar_generated.FILES) == set(published)


def test_published_sums_make_a_set_cifar_100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three files with the published sums are CIFAR-100 wherever they lie, and all can be loaded."""
    publish(monkeypatch, write_set(tmp_path / "a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b" / "cifar-100-python")
    sources = [cifar_data.find(str(tmp_path / name), NOWHERE) for name in "ab"]
    assert ["cifar-100", "cifar-100"] == [source.kind for source in sources]
    assert sources[0].fingerprint == sources[1].fingerprint
    assert [30, 10] == [len(cifar_data.load(sources[0], train)) for train in (True, False)]


def test_another_set_is_unverified_and_its_fingerprint_covers_the_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One changed pixel makes CIFAR-100 an unverified set with another fingerprint, which can be loaded."""
    publish(monkeypatch, write_set(tmp_path))
    before = cifar_data.find(str(tmp_path), NOWHERE)
    content = bytearray((tmp_path / "test").read_bytes())
    content[-100] ^= 1  # the images are the last entry
    (tmp_path / "test").write_bytes(content)
    after = cifar_data.find(str(tmp_path), NOWHERE)
    assert ["cifar-100", "cifar-100-format (unverified)"] == [before.kind, after.kind]
    assert before.fingerprint != after.fingerprint
    assert 10 == len(cifar_data.load(after, train=False))
    assert "not those of CIFAR-100" in after.description


def test_without_a_data_root_images_are_generated_and_called_so(tmp_path: Path) -> None:
    """The stand-in is described as what it is; as a data root it is an unverified set with the same fingerprint."""
    source = cifar_data.find(None, str(tmp_path))
    assert ("generated", str(tmp_path / cifar_generated.FOLDER)) == (source.kind, source.folder)
    assert "made by this suite" in source.description
    assert [30, 10] == [len(cifar_data.load(source, train)) for train in (True, False)]
    named = cifar_data.find(source.folder, NOWHERE)
    assert (cifar_data.UNVERIFIED, source.fingerprint) == (named.kind, named.fingerprint)


def test_a_data_root_for_other_workloads_has_images_generated(tmp_path: Path) -> None:
    """A root that holds nothing of the set, but MNIST say, is no error; the record says what was trained on."""
    (tmp_path / "MNIST" / "raw").mkdir(parents=True)
    assert "generated" == cifar_data.find(str(tmp_path), str(tmp_path / "cache")).kind


def test_the_provenance_is_plain(tmp_path: Path) -> None:
    """It survives JSON and says what, where and how many."""
    source = cifar_data.find(str(write_set(tmp_path)), NOWHERE)
    where = cifar_data.provenance(source, 30)
    assert where == json.loads(json.dumps(where))
    assert {"kind", "description", "folder", "fingerprint", "samples"} == set(where)
    assert (str(tmp_path), 30) == (where["folder"], where["samples"])


def test_a_file_is_hashed_once_unless_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training and validation set share the sums; another time of change means another look."""
    seen = []
    real = cifar_data._file_md5

    @functools.lru_cache
    def counted(path: str, version: tuple[int, int, int]) -> str:
        seen.append(path)
        return real(path, version)

    monkeypatch.setattr(cifar_data, "_file_md5", counted)
    write_set(tmp_path)
    for _ in range(2):
        load_test_part(tmp_path)
    assert 3 == len(seen)
    os.utime(tmp_path / "test", ns=(1, 1))
    load_test_part(tmp_path)
    assert [str(tmp_path / "test")] == seen[3:]


# Damage


@pytest.mark.parametrize("name", cifar_generated.FILES)
def test_damage_in_the_generated_set_is_seen(tmp_path: Path, name: str) -> None:
    """A changed byte in the cache is an error that says how to get a good set."""
    source = cifar_data.find(None, str(tmp_path))
    path = tmp_path / cifar_generated.FOLDER / name
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}' can't be used: its md5 is .*, expected .*made anew"):
        cifar_data.load(source, train=name == "train")


def test_a_generated_set_without_a_file_is_an_error(tmp_path: Path) -> None:
    """A file that somebody removed is named, with the remedy."""
    cifar_generated.ensure(str(tmp_path))
    (tmp_path / cifar_generated.FOLDER / "test").unlink()
    with pytest.raises(DataError, match="lacks test. Remove the folder; it is then made anew"):
        cifar_data.find(None, str(tmp_path))


def test_a_file_of_an_impossible_size_is_not_opened(tmp_path: Path) -> None:
    """Images that are cut off, and files much too large, are named with the sizes that are possible."""
    path = write_set(tmp_path) / "test"
    whole = path.read_bytes()
    path.write_bytes(whole[:20_000])
    with pytest.raises(
        DataError, match=r"test' has 20000 bytes, expected 30720 to .* for 10 images: it is cut"
    ):
        cifar_data.find(str(tmp_path), NOWHERE)
    os.truncate(path, 10_000_000)
    with pytest.raises(DataError, match=r"test' has 10000000 bytes"):
        cifar_data.find(str(tmp_path), NOWHERE)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ([1, 2], "no dictionary with an entry 'data'"),
        ({"data": np.zeros((10, 3072), np.uint8)}, "no dictionary with an entry 'fine_labels'"),
        (entry(data=np.zeros((10, 3072), np.int32)), "data is no array of uint8"),
        (entry(data=b"x" * 30_720), "data is no array of uint8"),
        (entry(data=np.zeros((10, 3072), np.float32)), "an array of another type than uint8 or int"),
        (entry(data=np.zeros((10, 3072), np.uint8, order="F")), "not plain values, row by row"),
        (entry(count=20), r"data has shape \(20, 3072\), expected \(10, 3072\)"),
        (entry(data=np.zeros((10, 32, 32, 3), np.uint8)), r"data has shape \(10, 32, 32, 3\), expected"),
        (entry(fine_labels=[1] * 9), "no list of 10 labels"),
        (entry(fine_labels=np.ones((10, 1), np.int64)), "no list of 10 labels"),
        (entry(fine_labels=[1] * 9 + [100]), "no class of 0 to 99 at position 9"),
        (entry(fine_labels=[-1] * 10), "no class of 0 to 99 at position 0"),
        (entry(fine_labels=[1, True] * 5), "no class of 0 to 99 at position 1"),
        (entry(fine_labels=["7"] * 10), "no class of 0 to 99 at position 0"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_another_content_is_named(tmp_path: Path, content: object, what: str, protocol: int) -> None:
    """What a file holds instead of ten images and labels is said, with what was expected and the file."""
    pad = b"" if len(pickle.dumps(content)) > 30_720 else b"\0" * 40_000
    (write_set(tmp_path) / "test").write_bytes(pickle.dumps(content, protocol) + pad)
    with pytest.raises(DataError, match=f"test' can't be used: .*{what}.*unpack the archive again"):
        load_test_part(tmp_path)


@pytest.mark.parametrize("names", [None, ["a"] * 99, [1] * 100])
def test_a_meta_file_without_a_hundred_names_is_named(tmp_path: Path, names: object) -> None:
    """The classes' names are checked as well."""
    (write_set(tmp_path) / "meta").write_bytes(pickle.dumps({"fine_label_names": names}))
    with pytest.raises(DataError, match="meta' can't be used: fine_label_names is no list of 100 names"):
        load_test_part(tmp_path)


@pytest.mark.parametrize("protocol", range(2, 5))
def test_files_that_python_3_pickled_are_read(tmp_path: Path, protocol: int) -> None:
    """A set written with this numpy, labels as an array of either byte order, gives the same samples."""
    content = entry(fine_labels=np.arange(10, dtype=">i4"))
    (write_set(tmp_path) / "test").write_bytes(pickle.dumps(content, protocol))
    dataset = load_test_part(tmp_path)
    assert list(range(10)) == dataset.targets
    assert content["data"].tobytes() == dataset.tensors()[0].numpy().tobytes()


# Hostile files


class Calls:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self.call


def hostile(marker: Path) -> dict[str, bytes]:
    """Pickles that would make a file, or otherwise do more than hold arrays."""
    command = f"open({str(marker)!r}, 'w')"
    array = b"cnumpy\nndarray\n"
    return {
        "shell": pickle.dumps(Calls(os.system, f"touch {marker}")),
        "eval": pickle.dumps(Calls(eval, command)),
        "protocol 0": pickle.dumps(Calls(eval, command), 0),
        "nested name": b"\x80\x04\x8c\x05numpy\x8c\x0ef2py.os.system\x93.",
        "inst": b"(S'touch x'\nios\nsystem\n.",
        "class": pickle.dumps(collections.OrderedDict(a=1)),
        "other codec": pickle.dumps(Calls(__import__("_codecs").encode, "x", "rot13")),
        "objects": pickle.dumps(entry(data=np.array([[Calls(eval, command)]], dtype=object)), 4),
        "persistent": b"\x80\x02U\x01xQ.",
        "extension": b"\x80\x02\x82\x01.",
        "state of a class": array + b"}U\x01aK\x01sb.",
        "attribute of a class": array + b"N}U\x0c__setstate__K\x01s\x86b.",
        "attribute of an array": array + b")\x81N}U\x06valuesK\x01s\x86b.",
        "attribute of a type": b"cnumpy\ndtype\nU\x02u1\x85R}U\x04codeU\x01Osb.",
        "array without a state": pickle.dumps({"fine_labels": 1})[:-1]
        + b"X\x04\0\0\0data"
        + array
        + b")\x81s.",
        "large memo": b"\x80\x02Nr\xff\xff\xff\xff.",
        "long string": b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7f.",
        "empty": b"",
        "no stop": b"\x80\x02}",
    }


@pytest.mark.parametrize(
    ("what", "published"),
    # pickle's reader in C would take 64 GB for the large memo; no file with a known sum has one.
    [
        (what, known)
        for what in hostile(Path())
        for known in (False, True)
        if (what, known) != ("large memo", True)
    ],
)
def test_hostile_pickles_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, published: bool
) -> None:
    """Neither reader calls anything, whether the sums are known or not: the file is named and nothing has happened."""
    marker = tmp_path / "marker"
    content = hostile(marker)[what]
    (write_set(tmp_path / "root") / "test").write_bytes(content + b"\n" * 40_000)
    if published:
        publish(monkeypatch, tmp_path / "root")
    before = {
        cls: set(vars(cls)) for cls in (cifar_pickle._Array, cifar_pickle._DType, cifar_pickle._Encoded)
    }
    with pytest.raises(DataError, match="test' can't be used"):
        load_test_part(tmp_path / "root")
    assert not marker.exists()
    assert before == {cls: set(vars(cls)) for cls in before}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damaged_byte_is_an_error_or_harmless(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever one byte of the file becomes, the outcome is a data set of ten images or a `DataError`."""
    path = write_set(tmp_path) / "test"
    content = bytearray(path.read_bytes())
    image_bytes = range(500, 30_500)
    start = content.rindex(b"T" + (30_720).to_bytes(4, "little")) + 5
    positions = [at for at in range(len(content)) if at - start not in image_bytes]
    content[data.draw(st.sampled_from(positions))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        dataset = load_test_part(tmp_path)
    except DataError:
        pass
    else:
        assert 10 == len(dataset) == len(dataset.targets)
        assert {*dataset.targets} <= {*range(100)}


def test_generated_files_call_what_the_published_ones_call() -> None:
    """The pickles hold the same three names as CIFAR-100's, which Python 2 wrote, and nothing newer than protocol 2."""
    content = cifar_generated.part_file("test", *cifar_generated.draw(10, 1))
    operations = list(pickletools.genops(content))
    assert {"numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype"} == {
        argument for opcode, argument, _ in operations if opcode.name == "GLOBAL"
    }
    assert 2 == max(opcode.proto for opcode, _, _ in operations)


# Samples


@functools.lru_cache
def random_set(side: int) -> Cifar:
    """Fifty images of random pixels: the hardest to resize, each byte as likely as any other."""
    bits = np.random.Generator(np.random.PCG64(1))
    images = bits.integers(0, 256, (50, 3072), dtype=np.uint8)
    images[0], images[1] = 0, 255
    return Cifar(images, bits.integers(0, 100, 50).tolist(), True, side)


def test_a_sample_is_torchvisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision's own CIFAR100 on the same files gives equal samples, at both sizes."""
    write_set(tmp_path / "cifar-100-python")
    monkeypatch.setattr(datasets.CIFAR100, "_check_integrity", lambda self: True)
    meta = hashlib.md5(cifar_generated.meta_file()).hexdigest()
    monkeypatch.setattr(datasets.CIFAR100, "meta", {**datasets.CIFAR100.meta, "md5": meta})
    normalize = transforms.Normalize((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
    source = cifar_data.find(str(tmp_path), NOWHERE)
    for side, resize in ((32, []), (224, [transforms.Resize((224, 224))])):
        transform = transforms.Compose([*resize, transforms.ToTensor(), normalize])
        theirs = datasets.CIFAR100(str(tmp_path), train=True, transform=transform)
        ours = cifar_data.load(source, train=True, side=side)
        assert len(theirs) == len(ours) == 30
        assert theirs.classes == ours.classes
        for (expected, label), (actual, found) in zip(theirs, ours, strict=False):
            assert label == found
            assert torch.equal(expected, actual)


@given(indices=st.lists(st.integers(0, 49), min_size=1, max_size=8), side=st.sampled_from([32, 224]))
@settings(max_examples=40)
def test_a_batch_is_its_samples_stacked(indices: list[int], side: int) -> None:
    """Batch, stacked samples and reference have equal shapes, types and values, to the last bit."""
    dataset = random_set(side)
    data, labels = dataset.batch(dataset.tensors(), torch.tensor(indices))
    samples = [dataset[index] for index in indices]
    assert torch.equal(torch.stack([sample for sample, _ in samples]), data)
    assert [label for _, label in samples] == labels.tolist()
    assert ((len(indices), 3, side, side), torch.float32, torch.int64) == (
        data.shape,
        data.dtype,
        labels.dtype,
    )
    for row, index in enumerate(indices):
        reference, label = dataset.reference(index)
        assert torch.equal(reference, data[row])
        assert (reference.dtype, label.dtype, ()) == (torch.float32, torch.int64, label.shape)
        assert int(label) == int(labels[row])


@given(side=st.integers(33, 256))
@settings(max_examples=15)
def test_any_enlargement_is_pils_but_for_ties(side: int) -> None:
    """At other sizes than 224 each pass may round a value half-way between two levels otherwise than PIL: 2 levels."""
    dataset = random_set(side)
    data, _ = dataset.batch(dataset.tensors(), torch.arange(4))
    stacked = torch.stack([dataset[index][0] for index in range(4)])
    levels = (data - stacked).abs() * torch.tensor(cifar_data.DEVIATION).view(3, 1, 1) * 255
    assert 2.01 > levels.max().item()


def test_a_loader_delivers_the_same_batch() -> None:
    """Loader workers can be started with the set, and collate what `batch` makes."""
    dataset = random_set(32)
    loader: DataLoader[Any] = DataLoader(dataset, 7, num_workers=1, multiprocessing_context="spawn")
    data, labels = next(iter(loader))
    expected, expected_labels = dataset.batch(dataset.tensors(), torch.arange(7))
    assert torch.equal(expected, data)
    assert torch.equal(expected_labels, labels)


def test_the_tensors_are_the_raw_images() -> None:
    """Images are uint8 and contiguous, share the memory of the set, and are not changed by making batches."""
    dataset = random_set(32)
    images, labels = dataset.tensors()
    before = images.clone()
    dataset.batch((images, labels), torch.arange(50))
    assert ((50, 3, 32, 32), torch.uint8, True) == (images.shape, images.dtype, images.is_contiguous())
    assert torch.equal(before, images)
    assert images.data_ptr() == dataset.data.__array_interface__["data"][0]


def test_a_new_epoch_changes_nothing() -> None:
    """Samples are the same in all epochs and on all ranks."""
    dataset = random_set(32)
    before = dataset[3][0]
    dataset.start_epoch(5, 7)
    assert torch.equal(before, dataset[3][0])


def test_constants_are_made_once_for_a_device() -> None:
    """A second batch copies nothing but indices to the device."""
    first, again = (cifar_data._constants(torch.device("cpu")) for _ in range(2))
    assert all(a is b for a, b in zip(first, again, strict=True))
    assert pytest.approx(cifar_data.MEAN) == first[1].flatten().tolist()
