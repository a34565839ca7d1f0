"""Where the boxes of the 3-D U-Net come from, and a data set of random crops of them in random orientation.

Two places: four ``.npy`` files, or the two HDF5 files of NERSC's SC22 tutorial, under the data root; or generated boxes
(`models.density_generated`). A data root that was named and lacks the files is an error: training on other data than
was asked for is never silent.

There are no published check sums of the tutorial's boxes, so what lies under a data root is called "density-format
(unverified)". Boxes have up to 40 GB and are never read whole: type, shape and size of each file are checked, and a sum
over evenly spaced blocks is the fingerprint (`density_generated.sampled_md5` says what that finds).
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from models import density_generated
from models.density_generated import CHANNELS
from models.errors import DataError
from models.rotations import MATRICES, cut_points, cut_tensor, cut_views, point_places

UNVERIFIED = "density-format (unverified)"

DESCRIPTIONS = {
    "generated": "Gaussian random fields and a local formula of them, made by this suite as a stand-in for cosmology",
    UNVERIFIED: "boxes in the format of the SC22 tutorial's cosmology, for which there are no published check sums",
}

HDF5_NAMES = {"train": "downsamp_2048crop_train.h5", "validation": "downsamp_1024crop_valid.h5"}
"""From the tutorial's configuration, ``config/UNet.yaml``."""

HDF5_DATASETS = {"input": "Nbody", "target": "Hydro"}
"""From the tutorial's ``utils/data_loader.py``."""

AGAIN = "Copy the file again, or name another data root."


@dataclass(frozen=True)
class Box:
    """Where a field lies: float32 numbers of shape ``(channels, n, n, n)``, from `offset` bytes into a file on."""

    path: str
    offset: int
    shape: tuple[int, ...]

    def open(self) -> NDArray[np.float32]:
        """Map the field into memory. Writing to it changes the process's own copy, never the file."""
        # Not the subclass numpy.memmap: each slice of it would cost some microseconds more.
        return np.asarray(np.memmap(self.path, np.dtype("<f4"), "c", self.offset, self.shape))


@dataclass(frozen=True)
class Source:
    """The boxes of a set, and what they are.

    `kind` is "generated" or "density-format (unverified)". `boxes` and `md5s` have an entry for each of the names in
    `density_generated.file_names`, the sums being those of `density_generated.sampled_md5`.
    """

    kind: str
    folder: str
    boxes: dict[str, Box]
    md5s: dict[str, str]

    @property
    def description(self) -> str:
        """What the set is, in a few words for a report."""
        return DESCRIPTIONS[self.kind]

    @property
    def fingerprint(self) -> str:
        """sha256 over the sampled sums of all four boxes: equal for equal data, wherever and however they lie."""
        text = "".join(f"{self.md5s[name]}  {name}\n" for name in sorted(self.md5s))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(eq=False)
class Crops(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Random crops of a box in one of 24 orientations: as many an epoch as one likes, since each is drawn anew.

    The draw of an epoch is a table in shared memory, one row a sample. `start_epoch` overwrites it in place, so that
    loader workers that already run cut at the new places too. Without it, it is the draw of epoch 0 and seed 0.

    Parameters
    ----------
    input, target : Box
        Fields of 4 and 5 channels over the same box.
    side : int
        Points along an edge of a crop.
    samples : int
        Crops in an epoch.
    """

    input: Box
    target: Box
    side: int
    samples: int
    table: torch.Tensor = field(init=False, repr=False)
    """int64, shape ``(samples, 4)``: lowest corner and number of the rotation."""

    def __post_init__(self) -> None:
        self._maps = (self.input.open(), self.target.open())
        self.table = torch.zeros((self.samples, 4), dtype=torch.int64).share_memory_()
        self.start_epoch(0, 0)

    def __getstate__(self) -> dict[str, Any]:
        # A map would travel to a loader worker as its contents; the worker maps the file itself.
        return {name: value for name, value in self.__dict__.items() if name != "_maps"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._maps = (self.input.open(), self.target.open())

    def __len__(self) -> int:
        return self.samples

    def start_epoch(self, epoch: int, seed: int) -> None:
        """Draw the places and rotations of an epoch, in place; call it before an epoch's iterator is made.

        Every place at which a crop fits is as likely as any other, the last along each axis included (the tutorial
        leaves that one out).

        Parameters
        ----------
        epoch, seed : int
            0 or more. Each pair gives a draw of its own.
        """
        # Raw words of PCG64, which are the same in every numpy (NEP 19); the remainder favours none by more than 1e-16.
        bits = np.random.PCG64(np.random.SeedSequence((seed, epoch)))
        corners = self.input.shape[-1] - self.side + 1
        choices = np.array([corners, corners, corners, len(MATRICES)], dtype=np.uint64)
        words = bits.random_raw(self.samples * 4).reshape(self.samples, 4)
        self.table.copy_(torch.from_numpy((words % choices).astype(np.int64)))

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cut one sample: float32, shapes ``(4, side, side, side)`` and ``(5, side, side, side)``, contiguous."""
        row = self._row(index)
        values, target = (np.ascontiguousarray(cut_views(box, self.side, row)) for box in self._maps)
        return _owned(values), _owned(target)

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return both boxes as they lie in the files, mapped into memory."""
        return tuple(torch.from_numpy(box) for box in self._maps)

    def batch(
        self, tensors: tuple[torch.Tensor, ...], indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cut the samples `indices` on the device where `tensors` lie; values are those of `__getitem__`."""
        rows = [self._row(index) for index in indices.tolist()]
        values, target = (
            torch.empty((len(rows), len(box), *(self.side,) * 3), dtype=box.dtype, device=box.device)
            for box in tensors
        )
        for place, row in enumerate(rows):
            for box, batch in zip(tensors, (values, target)):
                batch[place].copy_(cut_tensor(box, self.side, row))
        return values, target

    def reference(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cut one sample point by point (`models.rotations.cut_points`)."""
        places = point_places(self.side, self._row(index))
        values, target = (cut_points(box, places) for box in self._maps)
        return torch.from_numpy(values), torch.from_numpy(target)

    def _row(self, index: int) -> tuple[int, int, int, int]:
        if not 0 <= index < self.samples:
            raise IndexError(f"sample {index} asked for, the data set has {self.samples}")
        z, y, x, rotation = self.table[index].tolist()
        return z, y, x, rotation


def find(data_root: str | None, cache_dir: str, sides: Mapping[str, int], crop: int) -> Source:
    """Find the boxes of the 3-D U-Net and say what they are.

    Parameters
    ----------
    data_root : str or None
        Folder with four ``.npy`` files (`density_generated.file_names`) or the tutorial's two HDF5 files, in itself or
        in ``density``. None: not staged.
    cache_dir : str
        Where generated boxes are kept. Used only if nothing was staged; made if it is missing.
    sides : mapping
        Points along an edge of the generated boxes ``train`` and ``validation``. Staged ones may have any.
    crop : int
        Points along an edge of a crop. No box may be smaller.

    Returns
    -------
    Source
        The boxes and their kind.

    Raises
    ------
    DataError
        The data root lacks some of the files or doesn't exist, a file is damaged or of another type or shape, HDF5
        can't be read here, or generated boxes can't be written or trusted.
    OSError
        A file went away or can't be read.
    """
    staged = None if data_root is None else _under_root(data_root, crop)
    if staged is not None:
        return staged
    folder = density_generated.ensure(cache_dir, sides)
    again = f"Remove {folder!r}; it is then made anew."
    expected = density_generated.checksums(folder)
    boxes = {name: _npy_box(os.path.join(folder, name), again) for name in expected}
    _check_shapes(boxes, crop, again)
    for name, box in boxes.items():
        found = density_generated.sampled_md5(box.open())
        if found != expected[name]:
            raise DataError(
                f"{box.path!r} has the sampled md5 {found}, expected {expected[name]}: it is damaged. {again}"
            )
    return Source("generated", folder, boxes, expected)


def provenance(source: Source, samples: int) -> dict[str, object]:
    """Return what a record keeps about the data: plain values, ready for JSON."""
    return {
        "kind": source.kind,
        "description": source.description,
        "folder": source.folder,
        "fingerprint": source.fingerprint,
        "samples": samples,
    }


def crops(source: Source, part: str, side: int, samples: int) -> Crops:
    """Return the data set of a part, ``train`` or ``validation``."""
    return Crops(source.boxes[f"{part}-input.npy"], source.boxes[f"{part}-target.npy"], side, samples)


def _under_root(data_root: str, crop: int) -> Source | None:
    """Return the boxes under a data root that somebody named; None where nothing of them is there.

    Some of the files, or no such root, is an error that says everything that was looked at.
    """
    if not data_root:
        # Joined to a file's name it would mean the current folder, which nobody named.
        raise DataError(
            "the data root is empty; expected the folder that holds density boxes, or no data root at all."
        )
    looked_at, found = [], False
    for folder in (os.path.join(data_root, "density"), data_root):
        if not os.path.isdir(folder):
            looked_at.append(f"no folder {folder!r}")
            continue
        missing = {}
        for names in (density_generated.file_names(), tuple(HDF5_NAMES.values())):
            missing[names] = [name for name in names if not os.path.exists(os.path.join(folder, name))]
            found = found or len(missing[names]) < len(names)
            if not missing[names]:
                return _staged(folder, crop, hdf5=names[0].endswith(".h5"))
        looked_at.append(f"{folder!r} lacks " + " and ".join(", ".join(names) for names in missing.values()))
    if os.path.isdir(data_root) and not found and not os.path.isdir(os.path.join(data_root, "density")):
        # It holds what other workloads need.
        return None
    raise DataError(
        f"the data root {data_root!r} doesn't hold density boxes: {'; '.join(looked_at)}. Expected the four .npy files "
        "or the two .h5 files. Stage them, name another data root, or name none to train on generated boxes, which is "
        "then recorded."
    )


def _staged(folder: str, crop: int, hdf5: bool) -> Source:
    boxes = (
        _hdf5_boxes(folder)
        if hdf5
        else {name: _npy_box(os.path.join(folder, name), AGAIN) for name in density_generated.file_names()}
    )
    _check_shapes(boxes, crop, AGAIN)
    md5s = {name: density_generated.sampled_md5(box.open()) for name, box in boxes.items()}
    return Source(UNVERIFIED, folder, boxes, md5s)


def _npy_box(path: str, remedy: str) -> Box:
    """Read the header of a ``.npy`` file and compare it with the file's size."""
    try:
        # numpy itself maps the file, so header and length are what numpy takes them for.
        array = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{path!r} can't be mapped: {error}. Expected a whole .npy file of float32. {remedy}"
        ) from error
    except FileNotFoundError as error:
        raise DataError(f"{path!r} is missing. {remedy}") from error
    if array.dtype != np.dtype("<f4") or not array.flags.c_contiguous:
        order = "C" if array.flags.c_contiguous else "Fortran"
        raise DataError(
            f"{path!r} holds {array.dtype.str} in {order} order, expected float32 (<f4) in C order. {remedy}"
        )
    size, expected = os.path.getsize(path), int(array.offset) + array.nbytes
    if size != expected:
        raise DataError(f"{path!r} has {size} bytes, its header says {expected}. {remedy}")
    return Box(path, int(array.offset), tuple(array.shape))


def _hdf5_boxes(folder: str) -> dict[str, Box]:
    """Ask h5py where in the tutorial's files the numbers lie; they are then mapped like those of ``.npy`` files."""
    as_npy = (
        f"save the boxes as {', '.join(density_generated.file_names())} (float32, channels first) instead"
    )
    try:
        # By name: h5py is no part of a stack, and nothing but this function needs it.
        h5py = importlib.import_module("h5py")
    except ImportError as error:
        raise DataError(
            f"{folder!r} holds HDF5 files, and h5py can't be imported ({error}). Install h5py, or {as_npy}."
        ) from error
    boxes = {}
    for part, file_name in HDF5_NAMES.items():
        path = os.path.join(folder, file_name)
        try:
            with h5py.File(path, "r") as file:
                for content, name in HDF5_DATASETS.items():
                    dataset = file[name]
                    offset, found = dataset.id.get_offset(), dataset.dtype
                    if found != np.dtype("<f4") or offset is None:
                        raise DataError(
                            f"{path!r}: {name!r} holds {found} in {'chunks' if offset is None else 'one piece'}, "
                            f"expected float32 in one piece, which can be mapped; {as_npy}."
                        )
                    boxes[f"{part}-{content}.npy"] = Box(path, int(offset), tuple(dataset.shape))
        except (KeyError, OSError) as error:
            raise DataError(
                f"{path!r} can't be read: {error}. Expected an HDF5 file with {', '.join(HDF5_DATASETS.values())}. "
                f"{AGAIN}"
            ) from error
    return boxes


def _check_shapes(boxes: Mapping[str, Box], crop: int, remedy: str) -> None:
    """Compare channels and sides: cubes that a crop fits in, and a target for every point of the input."""
    for name, box in boxes.items():
        part, _, content = name[: -len(".npy")].partition("-")
        channels = CHANNELS[content]
        side = boxes[f"{part}-input.npy"].shape[-1] if boxes[f"{part}-input.npy"].shape else 0
        if box.shape != (channels, side, side, side) or side < crop:
            raise DataError(
                f"{box.path!r} has shape {box.shape} ({part} {content}), expected ({channels}, n, n, n) with n at "
                f"least {crop} and the same for input and target. {remedy}"
            )


def _owned(array: NDArray[np.float32]) -> torch.Tensor:
    """Return a tensor over an array; over a copy if the array still lies in a map (a crop as large as the box)."""
    return torch.from_numpy(array if array.flags.owndata else array.copy())
