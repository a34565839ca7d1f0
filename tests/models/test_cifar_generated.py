"""The generated stand-in: equal everywhere, readable by torchvision's code, and made once."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from models import cifar_data, cifar_generated
from models.errors import DataError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generated set, made once for this module and test_resnet.py; read only."""
    return Path(cifar_generated.ensure(str(tmp_path_factory.getbasetemp() / "cifar-cache")))


def test_equal_arguments_give_equal_arrays() -> None:
    """Images and labels depend on count and seed alone, and another seed gives others."""
    first, again, other = (cifar_generated.draw(50, seed) for seed in (1, 1, 2))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]
    assert first[0].tobytes() != other[0].tobytes()


def test_the_files_are_the_ones_of_version_1() -> None:
    """The bytes are pinned: a change needs a new folder name, or two stacks would train on different data."""
    assert "cifar-100-generated-v1" == cifar_generated.FOLDER
    part = cifar_generated.part_file("train", *cifar_generated.draw(1000, 1))
    sums = [hashlib.md5(content).hexdigest() for content in (part, cifar_generated.meta_file())]
    assert ["e64394db5d09c369fb0ee71782b34029", "a4e26e36c088c96fad7a3ccc290874bb"] == sums


def test_the_images_use_the_whole_range() -> None:
    """Low and high cells with noise span 32 to 255 and no value was cut off or wrapped round."""
    images, _ = cifar_generated.draw(500, 1)
    assert {*range(32, 96), *range(192, 256)} == set(np.unique(images).tolist())


def test_every_class_has_its_own_mosaic() -> None:
    """Any two of the hundred mosaics differ in at least 6 of their 48 cells."""
    mosaics = cifar_generated._mosaics().reshape(100, 3, 4, 8, 4, 8)[:, :, :, 0, :, 0].reshape(100, 48)
    different = (mosaics[:, None] != mosaics[None]).sum(axis=2) + 48 * np.eye(100, dtype=int)
    assert 6 <= different.min()


def test_the_nearest_mosaic_tells_the_class() -> None:
    """Without noise an image is its class's mosaic: the nearest of the hundred is the label's, for all images."""
    images, labels = cifar_generated.draw(300, 1)
    far = np.abs(images[:, None].astype(int) - cifar_generated._mosaics()[None].astype(int) - 32).sum(axis=2)
    assert labels.tolist() == far.argmin(axis=1).tolist()


def test_python_reads_the_files_as_torchvision_does(folder: Path) -> None:
    """pickle itself gives a dictionary with the keys, types and sizes of CIFAR-100's files, coarse labels fitting."""
    with (folder / "test").open("rb") as stream:
        entry = pickle.load(stream, encoding="latin1")
    assert {"data", "fine_labels", "coarse_labels", "filenames", "batch_label"} == set(entry)
    assert ((10_000, 3072), np.uint8) == (entry["data"].shape, entry["data"].dtype)
    images, labels = cifar_generated.draw(10_000, cifar_generated.SEEDS["test"])
    assert images.tobytes() == entry["data"].tobytes()
    assert labels.tolist() == entry["fine_labels"]
    assert [label // 5 for label in entry["fine_labels"]] == entry["coarse_labels"]
    assert 10_000 == len(set(entry["filenames"]))
    meta = pickle.loads((folder / "meta").read_bytes(), encoding="latin1")
    assert (100, 20) == (len(set(meta["fine_label_names"])), len(set(meta["coarse_label_names"])))


def test_every_class_has_equally_many_samples_in_no_order() -> None:
    """Classes are balanced in both parts, and neighbours are not sorted or periodic."""
    for part, count in cifar_generated.SAMPLES.items():
        _, labels = cifar_generated.draw(count, cifar_generated.SEEDS[part])
        assert [count // 100] * 100 == np.bincount(labels).tolist()
        # 0.01 for independent labels; 0.005 is five deviations of 10,000.
        assert 0.015 > float(np.mean(labels[1:] == labels[:-1])) > 0.005


def test_the_parts_differ(folder: Path) -> None:
    """Validation images are not among the training images, and none comes twice."""
    source = cifar_data.find(None, str(folder.parent))
    seen = set()
    for train in (True, False):
        data = cifar_data.load(source, train).tensors()[0].numpy()
        seen |= {hashlib.md5(image).digest() for image in data}
    assert 60_000 == len(seen)


def test_the_check_sums_are_those_of_the_files(folder: Path) -> None:
    """MD5SUMS has the md5 of each of the three files, and nothing else lies there."""
    expected = {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in cifar_generated.FILES}
    assert expected == cifar_generated.checksums(str(folder))
    assert {*cifar_generated.FILES, cifar_generated.CHECKSUMS} == set(os.listdir(folder))


def test_a_set_that_is_there_is_kept(folder: Path) -> None:
    """A second call returns the same folder and writes nothing."""
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert str(folder) == cifar_generated.ensure(str(folder.parent))
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_two_processes_at_once_make_one_good_set(tmp_path: Path) -> None:
    """Two processes that find nothing both succeed; one whole set is left and no temporary folder."""
    code = (
        "import sys; from models import cifar_generated as g; g.SAMPLES = {'train': 5000, 'test': 1000};"
        "print(g.ensure(sys.argv[1]))"
    )
    cache = tmp_path / "cache"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(cache)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert [0, 0] == [process.returncode for process in processes]
    assert [str(cache / cifar_generated.FOLDER)] * 2 == outputs
    assert [cifar_generated.FOLDER] == os.listdir(cache)
    for name, md5 in cifar_generated.checksums(outputs[0]).items():
        assert md5 == hashlib.md5(Path(outputs[0], name).read_bytes()).hexdigest()


def test_the_later_of_two_takes_the_set_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds a finished folder at its rename throws its own away and keeps the other's, untouched."""

    def write_while_another_finishes(own: str) -> None:
        Path(own, "mine").write_bytes(b"")
        (tmp_path / cifar_generated.FOLDER).mkdir()
        (tmp_path / cifar_generated.FOLDER / "theirs").write_bytes(b"")

    monkeypatch.setattr(cifar_generated, "_write", write_while_another_finishes)
    found = cifar_generated.ensure(str(tmp_path))
    assert [cifar_generated.FOLDER] == os.listdir(tmp_path)
    assert ["theirs"] == os.listdir(found)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while writing names the cache and a remedy, and removes the temporary folder."""

    def fill(own: str) -> None:
        Path(own, "half").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cifar_generated, "_write", fill)
    with pytest.raises(DataError, match=r"No space left on device.*name another cache folder"):
        cifar_generated.ensure(str(tmp_path))
    assert [] == os.listdir(tmp_path)


def test_a_cache_that_is_a_file_is_named(tmp_path: Path) -> None:
    """A file where the cache folder should be is an error that names it."""
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(DataError, match=r"can't be written to '.*cache'"):
        cifar_generated.ensure(str(tmp_path / "cache"))


@pytest.mark.parametrize(
    "text",
    ["", "d41d8cd98f00b204e9800998ecf8427e  train\n", "a b\nc d\ne f\n", "a b c\n" * 3, "\xff\n"],
    ids=["empty", "one line", "no sums", "three words", "not ASCII"],
)
def test_unreadable_check_sums_are_an_error_with_a_remedy(tmp_path: Path, text: str) -> None:
    """A check-sum file that is cut or strange makes the set untrusted."""
    (tmp_path / cifar_generated.CHECKSUMS).write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=r"MD5SUMS.*Remove .* made anew"):
        cifar_generated.checksums(str(tmp_path))


def test_missing_check_sums_are_an_error_with_a_remedy(folder: Path, tmp_path: Path) -> None:
    """A set without its check sums is untrusted."""
    own = tmp_path / cifar_generated.FOLDER
    own.mkdir()
    for name in cifar_generated.FILES:
        shutil.copy(folder / "meta", own / name)
    with pytest.raises(DataError, match=r"MD5SUMS' can't be read: No such file.*made anew"):
        cifar_data.find(None, str(tmp_path))
