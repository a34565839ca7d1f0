"""Where the images of the ResNet workloads come from, and a data set that reads them as torchvision does.

Two places: the files of CIFAR-100's Python version under the data root, or a generated stand-in
(`models.cifar_generated`). A data root that holds a part of the set is an error, one that holds nothing of it serves
other workloads: images are generated then, and the record says so. What a set is called never rests on where it lay but
on the md5 of its three files: a set that is not CIFAR-100 and has its form is called "cifar-100-format (unverified)".

The files are pickles, which `models.cifar_pickle` reads without running what is in them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torchvision import datasets, transforms
from torchvision.transforms.functional import to_pil_image

from models import cifar_generated
from models.cifar_generated import CLASSES, SAMPLES, SIDE, VALUES
from models.cifar_pickle import read_plain, values_of
from models.decoded import kept
from models.errors import DataError

SUBFOLDER = "cifar-100-python"
"""What the published archive unpacks to; the files may also lie in the data root itself."""

ROOM_PER_SAMPLE = 1024
"""Bytes besides the image that a sample may take. The published files have 33: two labels and a file name."""

MAX_META_BYTES = 1 << 20
"""The published file has 1 kB."""

UNVERIFIED = "cifar-100-format (unverified)"

# As torchvision publishes them: torchvision.datasets.CIFAR100.train_list, test_list and meta.
PUBLISHED = {
    "train": "16019d7e3df5f24257cddd939b257f8d",
    "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "meta": "7973b15100ade9c7d40fb424638fde48",
}

DESCRIPTIONS = {
    "cifar-100": "CIFAR-100, photographs in a hundred classes",
    "generated": "colour mosaics with noise, made by this suite as a stand-in for CIFAR-100",
    UNVERIFIED: "a set in the format of CIFAR-100 whose check sums are not those of CIFAR-100",
}

MEAN, DEVIATION = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
"""Of CIFAR-100's training pixels, scaled to 0..1. The source normalizes with them; so every set here is."""


@dataclass(frozen=True)
class Source:
    """Three files in the format of CIFAR-100, and what they are.

    `kind` is "cifar-100", "generated" or "cifar-100-format (unverified)". `md5s` has the sum of each of
    `cifar_generated.FILES`, which lie in `folder`.
    """

    kind: str
    folder: str
    md5s: dict[str, str]

    @property
    def description(self) -> str:
        """What the set is, in a few words for a report."""
        return DESCRIPTIONS[self.kind]

    @property
    def fingerprint(self) -> str:
        """sha256 over the md5 of all three files: equal for equal data, wherever it lies."""
        text = "".join(f"{self.md5s[name]}  {name}\n" for name in sorted(self.md5s))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


class Cifar(datasets.CIFAR100):  # type: ignore[misc]  # torchvision has no types
    """torchvision's CIFAR100 over arrays that are already in memory.

    Only the search for files is replaced. A sample goes the same way as in the source: uint8 array, PIL image,
    transform. `tensors`, `batch`, `reference` and `start_epoch` are described in `models.interface.Samples`.

    Parameters
    ----------
    images : numpy.ndarray
        uint8, shape ``(samples, 3072)``, as in the files.
    labels : list of int
        Classes of the samples, 0 to 99.
    train : bool
        Whether this is the training part.
    side : int
        Height and width of a sample in pixels; images are resized if it isn't 32.
    classes : list of str
        Names of the classes.
    root : str
        Where the files lie; it is only shown.
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        labels: list[int],
        train: bool,
        side: int = SIDE,
        classes: list[str] | None = None,
        root: str = "",
    ) -> None:
        resize = [] if side == SIDE else [transforms.Resize((side, side))]
        normalize = [transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]
        # Past datasets.CIFAR100.__init__, which would look for ROOT/cifar-100-python and hash it each time.
        datasets.VisionDataset.__init__(self, root, transform=transforms.Compose(resize + normalize))
        self.train = train
        self.side = side
        self.classes = classes or []
        self.data = images.reshape(-1, 3, SIDE, SIDE).transpose(
            0, 2, 3, 1
        )  # as torchvision does: (N, 32, 32, 3)
        self.targets = labels

    def tensors(self) -> tuple[torch.Tensor, ...]:
        # Back to the order of the files: (N, 3, 32, 32) without a copy.
        return torch.from_numpy(self.data.transpose(0, 3, 1, 2)), torch.tensor(self.targets)

    def batch(
        self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels = tensors
        chosen = indices.to(images.device, non_blocking=True)
        pixels = images[chosen].float()
        if self.side != SIDE:
            pixels = _resize(pixels, self.side)
        scale, mean, deviation = _constants(images.device)
        return pixels.div_(scale).sub_(mean).div_(deviation), labels[chosen]

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        pixels = self.data[index]
        if self.side != SIDE:
            # PIL itself, which may not be imported here by name. 2 is its BILINEAR, torchvision's default.
            pixels = np.asarray(to_pil_image(pixels).resize((self.side, self.side), 2))
        scaled = pixels.astype(np.float32) / np.float32(255)
        normalized = (scaled - np.array(MEAN, np.float32)) / np.array(DEVIATION, np.float32)
        return torch.from_numpy(normalized.transpose(2, 0, 1).copy()), torch.tensor(self.targets[index])

    def start_epoch(self, epoch: int, seed: int) -> None:
        pass  # nothing is random in these samples


def _resize(pixels: torch.Tensor, side: int) -> torch.Tensor:
    """Resize whole numbers of shape ``(batch, channels, height, width)`` as PIL does: rows, round, columns, round.

    From 32 to 224 the weights are multiples of 1/7, so no value lies half-way between two grey levels and the result
    is PIL's own. With other sizes a tie may be rounded otherwise in each pass: up to two grey levels.
    """
    for size in ((pixels.shape[2], side), (side, side)):
        pixels = F.interpolate(
            pixels, size=size, mode="bilinear", align_corners=False, antialias=True
        ).round_()
    return pixels


@functools.cache
def _constants(device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return 255, mean and deviation on a device, copied there once: each copy would wait for the device.

    255 is a tensor because CUDA multiplies by the reciprocal of a plain number, which rounds otherwise than the CPU.
    """
    mean, deviation = (torch.tensor(values, device=device).view(3, 1, 1) for values in (MEAN, DEVIATION))
    return torch.tensor(255.0, device=device), mean, deviation


def find(data_root: str | None, cache_dir: str) -> Source:
    """Find the data of the ResNet workloads and say what they are.

    Parameters
    ----------
    data_root : str or None
        Folder with the files ``train``, ``test`` and ``meta``, in itself or in ``cifar-100-python``. None: not staged.
    cache_dir : str
        Where generated data are kept. Used only if nothing of the set is staged; made if it is missing.

    Returns
    -------
    Source
        The files and their kind.

    Raises
    ------
    DataError
        The data root lacks some of the files or doesn't exist, a file's size is impossible, or generated data can't be
        written or trusted.
    OSError
        A file is there and can't be read.
    """
    staged = None if data_root is None else _under_root(data_root)
    if staged is not None:
        folder = staged
        md5s = {name: _md5(folder, name) for name in cifar_generated.FILES}
        return Source("cifar-100" if md5s == PUBLISHED else UNVERIFIED, folder, md5s)
    folder = cifar_generated.ensure(cache_dir)
    missing = _missing(folder)
    if missing:
        raise DataError(f"{folder!r} lacks {', '.join(missing)}. Remove the folder; it is then made anew.")
    return Source("generated", folder, cifar_generated.checksums(folder))


def load(source: Source, train: bool, side: int = SIDE, cache_dir: str = "") -> Cifar:
    """Read one part of a set, check it, and return it normalized as in the source.

    Parameters
    ----------
    source : Source
        What `find` returned.
    train : bool
        The 50,000 training samples, or the 10,000 others.
    side : int
        Height and width that images are resized to.
    cache_dir : str
        Where a copy of the decoded images is kept for the next launch (`models.decoded`); empty: none is.

    Returns
    -------
    Cifar
        Samples are pairs of a float32 tensor of shape ``(3, side, side)`` and a class of 0 to 99.

    Raises
    ------
    DataError
        A file is damaged, hostile, has another count or shape, another label, or isn't what `find` called it.
    OSError
        A file went away or can't be read.
    """
    part = "train" if train else "test"
    names = _entry(_read_checked(source, "meta"), "fine_label_names", source, "meta")
    if not isinstance(names, list) or len(names) != CLASSES or not all(type(name) is str for name in names):
        raise _damaged(source, "meta", f"fine_label_names is no list of {CLASSES} names")
    arrays = kept(
        cache_dir,
        os.path.join(source.folder, part),
        source.md5s[part],
        ["images", "labels"],
        lambda: _decode(source, part),
    )
    return Cifar(arrays["images"], arrays["labels"].tolist(), train, side, names, source.folder)


def _decode(source: Source, part: str) -> dict[str, NDArray[Any]]:
    """Return images (uint8, ``(samples, 3072)``) and labels of one part of a set, checked."""
    content, count = _read_checked(source, part), SAMPLES[part]
    images, labels = (_entry(content, key, source, part) for key in ("data", "fine_labels"))
    pixels, numbers = values_of(images), values_of(labels)
    if pixels is None or pixels.dtype != np.uint8:
        raise _damaged(source, part, f"data is no array of uint8; expected shape {(count, VALUES)}")
    if pixels.shape != (count, VALUES):
        raise _damaged(source, part, f"data has shape {pixels.shape}, expected {(count, VALUES)}")
    if numbers is not None:
        labels = numbers.tolist() if numbers.ndim == 1 else None
    if not isinstance(labels, list) or len(labels) != count:
        raise _damaged(source, part, f"fine_labels is no list of {count} labels, one for each image")
    for position, label in enumerate(labels):
        if type(label) is not int or not 0 <= label < CLASSES:
            raise _damaged(
                source, part, f"fine_labels has no class of 0 to {CLASSES - 1} at position {position}"
            )
    # A copy, since an array over the file's bytes can't be written to, which torch warns of.
    return {"images": pixels.copy(), "labels": np.array(labels, dtype=np.int64)}


def provenance(source: Source, samples: int) -> dict[str, object]:
    """Return what a record keeps about the data: plain values, ready for JSON."""
    return {
        "kind": source.kind,
        "description": source.description,
        "folder": source.folder,
        "fingerprint": source.fingerprint,
        "samples": samples,
    }


def _under_root(data_root: str) -> str | None:
    """Return the folder of the set under a data root that somebody named; None where nothing of the set is there.

    A part of the set, or no such root, is an error that says everything that was looked at.
    """
    if not data_root:
        # Joined to a file's name it would mean the current folder, which nobody named.
        raise DataError(
            "the data root is empty; expected the folder that holds CIFAR-100, or no data root at all."
        )
    looked_at = []
    for folder in (data_root, os.path.join(data_root, SUBFOLDER)):
        missing = _missing(folder)
        if not missing:
            return folder
        looked_at.append(
            f"{folder!r} lacks {', '.join(missing)}" if os.path.isdir(folder) else f"no folder {folder!r}"
        )
    nothing = len(_missing(data_root)) == len(cifar_generated.FILES)
    if os.path.isdir(data_root) and nothing and not os.path.isdir(os.path.join(data_root, SUBFOLDER)):
        return None
    raise DataError(
        f"the data root {data_root!r} doesn't hold CIFAR-100: {'; '.join(looked_at)}. Unpack cifar-100-python.tar.gz "
        f"(md5 {datasets.CIFAR100.tgz_md5}) there, name another data root, or name none to train on generated images, "
        "which is then recorded."
    )


def _missing(folder: str) -> list[str]:
    """Return the names that are no files in a folder."""
    return [name for name in cifar_generated.FILES if not os.path.isfile(os.path.join(folder, name))]


def _md5(folder: str, name: str) -> str:
    """Return the md5 of a file of plausible size; a file that this process has hashed is not read again."""
    path = os.path.join(folder, name)
    about = os.stat(path)
    count = SAMPLES.get(name, 0)
    least, most = (count * VALUES, count * (VALUES + ROOM_PER_SAMPLE)) if count else (1, 0)
    most += MAX_META_BYTES
    if not stat.S_ISREG(about.st_mode) or not least <= about.st_size <= most:
        raise DataError(
            f"{path!r} has {about.st_size} bytes, expected {least} to {most}"
            + (f" for {count} images: it is cut off, or another set." if count else ".")
            + " Unpack the archive again."
        )
    return _file_md5(path, (about.st_ino, about.st_size, about.st_mtime_ns))


@functools.lru_cache(maxsize=16)
def _file_md5(path: str, version: tuple[int, int, int]) -> str:  # noqa: ARG001
    """Return the md5 of a file in this version (inode, size, time). It finds damage and is no safeguard."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _read_checked(source: Source, name: str) -> object:
    """Unpickle a file of a set; it must be the one that `find` saw, or that was generated."""
    found, expected = _md5(source.folder, name), source.md5s[name]
    if found != expected:
        raise _damaged(source, name, f"its md5 is {found}, expected {expected}")
    with open(os.path.join(source.folder, name), "rb") as stream:
        try:
            content = read_plain(stream, trusted=source.kind != UNVERIFIED)
        except OSError:
            raise
        except Exception as error:
            # Damaged pickles raise whatever the opcode at hand raises: there is no list of it.
            raise _damaged(
                source, name, f"it is no such pickle ({type(error).__name__}: {error!s:.200})"
            ) from error
    return content


def _entry(content: object, key: str, source: Source, name: str) -> object:
    if not isinstance(content, dict) or key not in content:
        raise _damaged(source, name, f"it is no dictionary with an entry {key!r}")
    return content[key]


def _damaged(source: Source, name: str, what: str) -> DataError:
    remedy = (
        "Remove the folder; it is then made anew."
        if source.kind == "generated"
        else "Expected the file of CIFAR-100's Python version; unpack the archive again."
    )
    return DataError(f"{os.path.join(source.folder, name)!r} can't be used: {what}. {remedy}")
