"""The generated stand-in: equal everywhere, learnable, and made once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from models import mnist_generated
from models.errors import DataError
from models.idx import file_md5, read_idx

ROOT = Path(__file__).parents[2]


def test_equal_arguments_give_equal_arrays() -> None:
    """Images and labels depend on count and seed alone, and another seed gives others."""
    first, again, other = (mnist_generated.draw(50, seed) for seed in (1, 1, 2))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in again]
    assert first[0].tobytes() != other[0].tobytes()


def test_the_images_are_the_ones_of_version_1() -> None:
    """The stream is pinned: a change needs a new folder name, or two stacks would train on different data."""
    images, labels = mnist_generated.draw(1000, 1)
    assert mnist_generated.FOLDER == "mnist-generated-v1"
    assert (
        "dbd139f2b018e7f3f6182ce986e5fca8",
        "4af7dc769e4ac383e605cf9f50a4e508",
    ) == (file_md5(images), file_md5(labels))


def test_every_class_has_equally_many_samples_in_no_order(generated: Path) -> None:
    """Classes are balanced, and neighbours are not sorted or periodic."""
    labels = read_idx(str(generated / "train-labels-idx1-ubyte"), (60_000,))
    assert [6_000] * 10 == np.bincount(labels).tolist()
    assert (
        0.12 > float(np.mean(labels[1:] == labels[:-1])) > 0.08
    )  # 0.1 for independent labels, 16 deviations


def test_the_parts_differ(generated: Path) -> None:
    """Validation images are not among the training images."""
    train = read_idx(str(generated / "train-images-idx3-ubyte"), (60_000, 28, 28))
    test = read_idx(str(generated / "t10k-images-idx3-ubyte"), (10_000, 28, 28))
    seen = {hashlib.md5(image.tobytes()).digest() for image in train}
    assert 60_000 == len(seen)
    assert seen.isdisjoint(hashlib.md5(image.tobytes()).digest() for image in test)


def softmax_accuracy(
    images: NDArray[np.uint8],
    labels: NDArray[np.uint8],
    test_images: NDArray[np.uint8],
    test_labels: NDArray[np.uint8],
) -> float:
    """Accuracy of a linear softmax model after 40 steps of gradient descent on all samples."""
    x = (images.reshape(len(images), -1) / 255 - 0.15).astype(np.float32)
    one_hot = np.eye(10, dtype=np.float32)[labels]
    weights = np.zeros((x.shape[1], 10), np.float32)
    for _ in range(40):
        scores = np.exp(x @ weights - (x @ weights).max(axis=1, keepdims=True))
        weights -= 0.1 * x.T @ (scores / scores.sum(axis=1, keepdims=True) - one_hot) / len(x)
    test = (test_images.reshape(len(test_images), -1) / 255 - 0.15).astype(np.float32)
    return float(np.mean((test @ weights).argmax(axis=1) == test_labels))


def test_a_linear_model_learns_it_in_part(generated: Path) -> None:
    """A linear softmax model is right on more than 60 % of unseen images, and far from all."""
    part = {
        name: read_idx(str(generated / name))[:2_000]
        for name in os.listdir(generated)
        if name != mnist_generated.CHECKSUMS
    }
    accuracy = softmax_accuracy(
        part["train-images-idx3-ubyte"],
        part["train-labels-idx1-ubyte"],
        part["t10k-images-idx3-ubyte"],
        part["t10k-labels-idx1-ubyte"],
    )
    assert 0.60 < accuracy < 0.99


def test_the_check_sums_are_those_of_the_files(generated: Path) -> None:
    """MD5SUMS has the md5 of each of the four files."""
    sums = mnist_generated.checksums(str(generated))
    expected = {
        name: hashlib.md5((generated / name).read_bytes()).hexdigest()
        for name in mnist_generated.file_names()
    }
    assert expected == sums


def test_a_set_that_is_there_is_kept(generated: Path) -> None:
    """A second call returns the same folder and writes nothing."""
    before = {path: path.stat().st_mtime_ns for path in generated.iterdir()}
    assert str(generated) == mnist_generated.ensure(str(generated.parent))
    assert before == {path: path.stat().st_mtime_ns for path in generated.iterdir()}


def test_two_processes_at_once_make_one_good_set(tmp_path: Path) -> None:
    """Two processes that find nothing both succeed; one whole set is left and no temporary folder."""
    code = "import sys; from models import mnist_generated; print(mnist_generated.ensure(sys.argv[1]))"
    cache = tmp_path / "cache"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(cache)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert [0, 0] == [process.returncode for process in processes]
    assert [str(cache / mnist_generated.FOLDER)] * 2 == outputs
    assert [mnist_generated.FOLDER] == os.listdir(cache)
    for name, md5 in mnist_generated.checksums(outputs[0]).items():
        assert md5 == hashlib.md5(Path(outputs[0], name).read_bytes()).hexdigest()


def test_the_later_of_two_takes_the_set_of_the_first(
    generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who finds a finished folder at its rename throws its own away and keeps the other's, untouched."""

    def write_while_another_finishes(folder: str) -> None:
        Path(folder, "mine").write_bytes(b"")
        shutil.copytree(generated, tmp_path / mnist_generated.FOLDER)
        (tmp_path / mnist_generated.FOLDER / "theirs").write_bytes(b"")

    monkeypatch.setattr(mnist_generated, "_write", write_while_another_finishes)
    folder = mnist_generated.ensure(str(tmp_path))
    assert [mnist_generated.FOLDER] == os.listdir(tmp_path)
    assert "theirs" in os.listdir(folder)
    assert "mine" not in os.listdir(folder)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while writing names the cache and a remedy, and removes the temporary folder."""

    def fill(folder: str) -> None:
        Path(folder, "half").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mnist_generated, "_write", fill)
    with pytest.raises(DataError, match=r"No space left on device.*name another cache folder"):
        mnist_generated.ensure(str(tmp_path))
    assert [] == os.listdir(tmp_path)


def test_a_cache_that_is_a_file_is_named(tmp_path: Path) -> None:
    """A file where the cache folder should be is an error that names it."""
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(DataError, match=r"can't be written to '.*cache'"):
        mnist_generated.ensure(str(tmp_path / "cache"))


@pytest.mark.parametrize(
    "text",
    ["", "d41d8cd98f00b204e9800998ecf8427e  train-images-idx3-ubyte\n", "a b c\n" * 4, "\xff\n"],
    ids=["empty", "one line", "three words", "not ASCII"],
)
def test_unreadable_check_sums_are_an_error_with_a_remedy(tmp_path: Path, text: str) -> None:
    """A check-sum file that is cut or strange makes the set untrusted."""
    (tmp_path / mnist_generated.CHECKSUMS).write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=r"MD5SUMS.*Remove .* made anew"):
        mnist_generated.checksums(str(tmp_path))


def test_missing_check_sums_are_an_error_with_a_remedy(tmp_path: Path) -> None:
    """A set without its check sums is untrusted."""
    with pytest.raises(DataError, match=r"MD5SUMS' can't be read: No such file.*made anew"):
        mnist_generated.checksums(str(tmp_path))
