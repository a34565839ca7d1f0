"""A stand-in for the cosmology of the 3-D U-Net where no data can be had: boxes of matter and gas, made here.

The tutorial's input is the dark matter of an N-body simulation (density and three velocities), its target the gas of a
hydrodynamic one (density, temperature and three velocities; Harrington et al. 2021). Here the input is a Gaussian
random field with a power-law spectrum: its exponential is the density, and the gradient of its potential the velocity,
as in linear theory. The target is a plain non-linear formula of the input at the same point (`gas`), so a network can
learn it. It is not a simulation and is never called so; losses on it say that training works and nothing more.

Each box is periodic and is drawn from numpy's ``Generator`` and ``numpy.fft``. The same numpy gives the same files;
another may draw or round otherwise, which the fingerprint shows.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.files import whole_file
from models.generated import ensure_folder, read_sums

VERSION = 1
"""A change to the fields needs a new number, since old folders stay."""

CHECKSUMS = "MD5SUMS"
"""Sums of the whole files, in the form that ``md5sum -c MD5SUMS`` reads. For people: no launch reads 680 MB."""

SAMPLED = "SAMPLED-MD5SUMS"
"""Sums by `sampled_md5`, in the same form. These are compared on each reading."""

SEEDS = {"train": 20301, "validation": 20302}
"""Any two different numbers; these are the seeds of every generated set."""

CHANNELS = {"input": 4, "target": 5}
"""Density and three velocities; density, temperature and three velocities. From the tutorial (Nbody, Hydro)."""

BLOCKS, BLOCK_BYTES = 64, 65_536
"""`sampled_md5` reads this much: 4 MiB of each file, some hundredths of a second from a disk."""

SLOPE = -2.0
"""Power of the spectrum. Matter has about this slope where galaxies form, between +1 (large) and -3 (small scales)."""

ROUGHNESS = 0.5
"""Deviation of the logarithm of the density: voids of a third and knots of three times the mean are common."""


def matter(side: int, seed: int) -> NDArray[np.float32]:
    """Make a density and the velocities that belong to it.

    Parameters
    ----------
    side : int
        Points along an edge of the periodic box.
    seed : int
        Seed of numpy's default generator.

    Returns
    -------
    numpy.ndarray
        float32, shape ``(4, side, side, side)``: density with mean about 1, then three velocities of mean 0 and
        deviation 1.
    """
    noise = np.random.default_rng(seed).standard_normal((side, side, side), dtype=np.float32)
    waves = np.fft.rfftn(noise)
    line = np.fft.fftfreq(side) * side
    along = (line[:, None, None], line[None, :, None], line[None, None, : side // 2 + 1])
    square = along[0] ** 2 + along[1] ** 2 + along[2] ** 2
    square[0, 0, 0] = 1.0  # the mean is set to 0 in the next line; this keeps it from dividing by 0
    waves[0, 0, 0] = 0.0
    waves *= square ** (
        SLOPE / 4
    )  # the spectrum is the square of an amplitude, and `square` that of a wave number
    fields = np.empty((CHANNELS["input"], side, side, side), dtype=np.float32)
    logarithm = _standard(np.fft.irfftn(waves, s=noise.shape, axes=(0, 1, 2)))
    fields[0] = np.exp(ROUGHNESS * logarithm - ROUGHNESS**2 / 2)
    for axis in range(3):
        gradient = 1j * along[axis] / square * waves
        fields[axis + 1] = _standard(np.fft.irfftn(gradient, s=noise.shape, axes=(0, 1, 2)))
    return fields


def gas(fields: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute the target from the input, each point from itself alone.

    Parameters
    ----------
    fields : numpy.ndarray
        What `matter` returned, or a part of it.

    Returns
    -------
    numpy.ndarray
        float32, five channels of the same shape, inside (-1, 1) as tanh is, and off its ends: density, temperature
        (higher where it is dense or fast) and three velocities (lower where it is dense).
    """
    density, velocity = fields[0], fields[1:]
    result = np.empty((CHANNELS["target"], *density.shape), dtype=np.float32)
    speed = np.mean(velocity**2, axis=0)
    result[0] = np.tanh(density - 1.0)
    result[1] = np.tanh(0.5 * (density ** np.float32(2 / 3) - 1.0) + 0.25 * (speed - 1.0))
    result[2:] = np.tanh(velocity / (1.0 + density))
    result *= np.float32(0.9)
    return result


def folder_name(sides: Mapping[str, int]) -> str:
    """Return the name of the folder in the cache for boxes of these sides."""
    return f"density-generated-v{VERSION}-{sides['train']}-{sides['validation']}"


def file_names() -> tuple[str, ...]:
    """Return the names of the four files of a set."""
    return tuple(f"{part}-{content}.npy" for part in SEEDS for content in CHANNELS)


def ensure(cache_dir: str, sides: Mapping[str, int]) -> str:
    """Return the folder of the generated set, making it first where there is none.

    Any number of processes, on any number of nodes, may call this at once. The first makes the set in a folder of its
    own and renames that; the others wait for it where the disk has locks. Where it has none, each makes a set, the
    first one stays and the others are thrown away.

    Parameters
    ----------
    cache_dir : str
        Folder for generated data; made if it is missing.
    sides : mapping
        Points along an edge of the boxes ``train`` and ``validation``.

    Returns
    -------
    str
        The folder, with four ``.npy`` files and two files of check sums.

    Raises
    ------
    DataError
        The cache can't be written.
    """
    room = sum(sides[part] ** 3 for part in SEEDS) * sum(CHANNELS.values()) * 4 / 1e6
    return ensure_folder(
        cache_dir,
        folder_name(sides),
        lambda folder: _write(folder, sides),
        what="the generated density boxes",
        room=f"{room:.0f} MB",
        else_root="such boxes",
        lock=True,
    )


def checksums(folder: str) -> dict[str, str]:
    """Read the sampled check sums that were written with a generated set.

    Returns
    -------
    dict
        File name to `sampled_md5`, for the four files.

    Raises
    ------
    DataError
        The check sums are missing or unreadable, so the set can't be trusted.
    """
    return read_sums(folder, SAMPLED, file_names())


def sampled_md5(array: NDArray[np.float32]) -> str:
    """Return the md5 of an array's shape and of `BLOCKS` evenly spaced blocks of its bytes, first and last included.

    Finds a file that is another, cut short, left empty in parts or written by another version. It does not find a few
    changed bytes between the blocks. Arrays of up to 4 MiB are hashed whole.
    """
    raw = np.asarray(array).reshape(-1).view(np.uint8)
    digest = hashlib.md5(repr(tuple(array.shape)).encode("ascii"), usedforsecurity=False)
    if raw.size <= BLOCKS * BLOCK_BYTES:
        digest.update(raw.data)
    else:
        for block in range(BLOCKS):
            start = (raw.size - BLOCK_BYTES) * block // (BLOCKS - 1)
            digest.update(raw[start : start + BLOCK_BYTES].data)
    return digest.hexdigest()


def write_npy(path: str, array: NDArray[np.float32]) -> str:
    """Write an array whole as a ``.npy`` file of format 1.0, and return the file's md5."""
    head = io.BytesIO()
    layout: dict[str, Any] = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(head, layout)
    values = np.ascontiguousarray(array).reshape(-1).data
    digest = hashlib.md5(head.getvalue(), usedforsecurity=False)
    digest.update(values)
    with whole_file(path) as stream:
        stream.write(head.getvalue())
        stream.write(values)
    return digest.hexdigest()


def _write(folder: str, sides: Mapping[str, int]) -> None:
    """Write the four files and their check sums into an existing folder."""
    whole, sampled = [], []
    for part, seed in SEEDS.items():
        fields = matter(sides[part], seed)
        for content, array in (("input", fields), ("target", gas(fields))):
            name = f"{part}-{content}.npy"
            whole.append(f"{write_npy(os.path.join(folder, name), array)}  {name}\n")
            sampled.append(f"{sampled_md5(array)}  {name}\n")
    for name, sums in ((CHECKSUMS, whole), (SAMPLED, sampled)):
        with whole_file(os.path.join(folder, name)) as stream:
            stream.write("".join(sums).encode("ascii"))


def _standard(field: NDArray[Any]) -> NDArray[Any]:
    """Return a field of mean 0, scaled to deviation 1."""
    standard: NDArray[Any] = field / np.sqrt(np.mean(field**2, dtype=np.float64))
    return standard
