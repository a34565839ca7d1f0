"""Where the images of the MNIST workload come from, and a data set that reads them as torchvision does.

Three places, in this order: the four IDX files of MNIST under the data root; Debian's package dataset-fashion-mnist;
a generated stand-in (`models.mnist_generated`). A data root that was named and lacks the files is an error: training
on other data than was asked for is never silent.

What a set is called never rests on where it lay. `find` compares the md5 of both label files with the published ones
of MNIST and Fashion-MNIST, and `load` compares the images that it reads with the set that the labels named. A set that
is neither is called "mnist-format (unverified)" and is hashed whole. Reading labels costs a millisecond, hashing one
part's images about a tenth of a second.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torchvision import datasets, transforms

from models import mnist_generated
from models.decoded import kept
from models.errors import DataError
from models.idx import file_md5, read_idx

DEBIAN_FOLDER = "/usr/share/datasets/fashion-mnist"
"""Where Debian's package dataset-fashion-mnist puts its files."""

SAMPLES = {"train": 60_000, "t10k": 10_000}
SIDE = 28
CLASSES = 10

UNVERIFIED = "mnist-format (unverified)"

# md5 of the four decompressed files. MNIST: those of the files whose gzip sums torchvision lists in MNIST.resources.
# Fashion-MNIST: Debian's files, 0.0~git20200523.55506a9-1; counts, class balance and mean are the published ones.
KNOWN = {
    "mnist": {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    },
}

DESCRIPTIONS = {
    "mnist": "MNIST, handwritten digits",
    "fashion-mnist": "Fashion-MNIST (Zalando), photographs of clothes in the format of MNIST",
    "generated": "printed digits with noise, made by this suite as a stand-in for MNIST",
    UNVERIFIED: "a set in the format of MNIST whose check sums are neither those of MNIST nor of Fashion-MNIST",
}

MEAN, DEVIATION = (0.1307,), (0.3081,)
"""Of MNIST's training pixels, scaled to 0..1. The sources normalize with them; so every set here is."""


@dataclass(frozen=True)
class Source:
    """Four files in the format of MNIST, and what they are.

    `kind` is "mnist", "fashion-mnist", "generated" or "mnist-format (unverified)". `paths` and `md5s` have a file for
    each of the names in `mnist_generated.file_names`, the sums being those of the decompressed files.
    """

    kind: str
    folder: str
    paths: dict[str, str]
    md5s: dict[str, str]

    @property
    def description(self) -> str:
        """What the set is, in a few words for a report."""
        return DESCRIPTIONS[self.kind]

    @property
    def fingerprint(self) -> str:
        """sha256 over the md5 of all four files: equal for equal data, wherever it lies and however it is packed."""
        text = "".join(f"{self.md5s[name]}  {name}\n" for name in sorted(self.md5s))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


class Mnist(datasets.MNIST):  # type: ignore[misc]  # torchvision has no types
    """torchvision's MNIST over arrays that are already in memory.

    Only the search for files is replaced. A sample goes the same way as in the sources: uint8 tensor, PIL image,
    transform.

    Parameters
    ----------
    images : numpy.ndarray
        uint8, shape ``(samples, 28, 28)``.
    labels : numpy.ndarray
        uint8, shape ``(samples,)``, 0 to 9.
    train : bool
        Whether this is the training part.
    transform : callable, optional
        From PIL image to what a sample shall be.
    root : str
        Where the files lie; it is only shown.
    kind : str
        `Source.kind`. Sets the names of the classes, and is shown.
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        train: bool,
        transform: Callable[[Any], Any] | None = None,
        root: str = "",
        kind: str = UNVERIFIED,
    ) -> None:
        # Past datasets.MNIST.__init__, which would look for ROOT/MNIST/raw.
        datasets.VisionDataset.__init__(self, root, transform=transform)
        self.train = train
        self.kind = kind
        self.data = torch.from_numpy(images)
        self.targets = torch.from_numpy(labels.astype(np.int64))
        if kind == "fashion-mnist":
            self.classes = datasets.FashionMNIST.classes

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return images (uint8, ``(samples, 28, 28)``) and classes (int64, ``(samples,)``) as they lie in memory."""
        return self.data, self.targets

    def batch(
        self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the samples `indices`, normalized: float32 ``(batch, 1, 28, 28)`` and int64 ``(batch,)``.

        The arithmetic is that of ToTensor and Normalize in the same order. On the CPU values are equal to the last bit;
        on a GPU, which divides by a number by multiplying with its inverse, to about 2e-7.
        """
        images, targets = tensors
        # From pageable memory, so the host copies the indices before it goes on, and doesn't wait for the device.
        chosen = indices.to(images.device, non_blocking=True)
        values = images.index_select(0, chosen).unsqueeze(1).to(torch.float32)
        return values.div_(255).sub_(MEAN[0]).div_(DEVIATION[0]), targets.index_select(0, chosen)

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return one sample, normalized by numpy in float64."""
        pixels = self.data.numpy()[index].astype(np.float64)
        values = ((pixels / 255 - MEAN[0]) / DEVIATION[0]).astype(np.float32)
        return torch.from_numpy(values[np.newaxis]), torch.tensor(int(self.targets[index]))

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Do nothing: the samples are the same in every epoch."""

    def extra_repr(self) -> str:
        """Lines that torchvision adds to ``repr``."""
        return f"{super().extra_repr()}\nKind: {self.kind}"


def find(data_root: str | None, cache_dir: str, debian_folder: str = DEBIAN_FOLDER) -> Source:
    """Find the data of the MNIST workload and say what they are.

    Parameters
    ----------
    data_root : str or None
        Folder with MNIST's four files, in itself or in ``MNIST/raw``, plain or ``.gz``. None: not staged.
    cache_dir : str
        Where generated data are kept. Used only if nothing else is found; made if it is missing.
    debian_folder : str
        Where Debian's Fashion-MNIST would be.

    Returns
    -------
    Source
        The files and their kind.

    Raises
    ------
    DataError
        The data root lacks the files, a label file is damaged, or generated data can't be written or trusted.
    OSError
        A file is there and can't be read.
    """
    if data_root is not None:
        return _under_root(data_root)
    paths, _ = _files_in(debian_folder)
    if paths is not None:
        return _identify(debian_folder, paths)
    folder = mnist_generated.ensure(cache_dir)
    paths, missing = _files_in(folder)
    if paths is None:
        raise DataError(f"{folder!r} lacks {', '.join(missing)}. Remove the folder; it is then made anew.")
    return Source("generated", folder, paths, mnist_generated.checksums(folder))


def load(source: Source, train: bool, cache_dir: str = "") -> Mnist:
    """Read one part of a set, check it, and return it normalized as in the sources.

    Parameters
    ----------
    source : Source
        What `find` returned.
    train : bool
        The 60,000 training samples, or the 10,000 others.
    cache_dir : str
        Where a copy of the unpacked images is kept for the next launch (`models.decoded`); empty: none is.

    Returns
    -------
    Mnist
        Samples are pairs of a float32 tensor of shape ``(1, 28, 28)`` and a class of 0 to 9.

    Raises
    ------
    DataError
        A file is damaged, has another count or shape, a label above 9, or isn't what `find` called it.
    OSError
        A file went away or can't be read.
    """
    part = "train" if train else "t10k"
    name = f"{part}-images-idx3-ubyte"
    images = kept(
        cache_dir,
        source.paths[name],
        source.md5s[name],
        ["images"],
        lambda: {"images": _read_checked(source, name)},
    )["images"]
    labels = _read_checked(source, f"{part}-labels-idx1-ubyte")
    if labels.max() >= CLASSES:
        where = int(np.argmax(labels >= CLASSES))
        raise DataError(
            f"{source.paths[f'{part}-labels-idx1-ubyte']!r} has label {labels[where]} at position {where}, "
            f"expected 0 to {CLASSES - 1}: it is no ten-class set like MNIST."
        )
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])
    return Mnist(images, labels, train, transform, source.folder, source.kind)


def provenance(source: Source, samples: int) -> dict[str, object]:
    """Return what a record keeps about the data: plain values, ready for JSON."""
    return {
        "kind": source.kind,
        "description": source.description,
        "folder": source.folder,
        "fingerprint": source.fingerprint,
        "samples": samples,
    }


def _under_root(data_root: str) -> Source:
    """Return the set under a data root that somebody named, or say everything that was looked at."""
    if not data_root:
        # Joined to a file's name it would mean the current folder, which nobody named.
        raise DataError(
            "the data root is empty; expected the folder that holds MNIST, or no data root at all."
        )
    folders = [data_root, os.path.join(data_root, "MNIST", "raw")]
    looked_at = []
    for folder in folders:
        paths, missing = _files_in(folder)
        if paths is not None:
            return _identify(folder, paths)
        looked_at.append(
            f"{folder!r} lacks {', '.join(missing)}" if os.path.isdir(folder) else f"no folder {folder!r}"
        )
    raise DataError(
        f"the data root {data_root!r} doesn't hold MNIST: {'; '.join(looked_at)}. Each file may also end in .gz. "
        "Stage the files on a machine with network (python -m perf.data --root DIR), name another data root, or name "
        "none to train on Fashion-MNIST or generated images, which is then recorded."
    )


def _files_in(folder: str) -> tuple[dict[str, str] | None, list[str]]:
    """Return the path of each file, plain before ``.gz``; or None and the names that aren't there."""
    paths, missing = {}, []
    for name in mnist_generated.file_names():
        for path in (os.path.join(folder, name), os.path.join(folder, f"{name}.gz")):
            if os.path.exists(path):
                paths[name] = path
                break
        else:
            missing.append(name)
    return (None if missing else paths), missing


def _identify(folder: str, paths: dict[str, str]) -> Source:
    """Name a set by the md5 of its label files; hash the images too if those are nobody's we know."""
    labels = {name: file_md5(read_idx(paths[name], _shape(name))) for name in paths if "labels" in name}
    for kind, md5s in KNOWN.items():
        if all(md5s[name] == md5 for name, md5 in labels.items()):
            return Source(kind, folder, paths, md5s)
    images = {name: file_md5(read_idx(paths[name], _shape(name))) for name in paths if "images" in name}
    return Source(UNVERIFIED, folder, paths, {**labels, **images})


def _read_checked(source: Source, name: str) -> NDArray[np.uint8]:
    """Read a file of a set; it must be the one that the set's kind implies."""
    array = read_idx(source.paths[name], _shape(name))
    found, expected = file_md5(array), source.md5s[name]
    if found != expected:
        raise DataError(
            f"{source.paths[name]!r} has md5 {found} (decompressed), expected {expected}, as the other files of "
            f"{source.folder!r} are those of {source.kind!r}: the copy is damaged or mixed from two sets. "
            + (
                "Remove the folder; it is then made anew."
                if source.kind == "generated"
                else "Copy all four files again."
            )
        )
    return array


def _shape(name: str) -> tuple[int, ...]:
    """Return the shape that a file of this name must have."""
    count = SAMPLES[name.split("-", 1)[0]]
    return (count, SIDE, SIDE) if "images" in name else (count,)
