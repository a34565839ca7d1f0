"""A stand-in for MNIST where no data can be had: 60,000 + 10,000 images of printed digits, made here.

Each image is one of ten glyphs, moved by up to three pixels, in a brightness of its own, with one pixel in eight
replaced by noise. A linear model learns it in part, the CNN of the suite almost wholly. It is not MNIST and is never
called so; losses and accuracies on it say that training works and nothing more.

Only raw 64-bit words of numpy's PCG64 and integer arithmetic are used. numpy promises that stream for its bit
generators (NEP 19), not for ``Generator``'s distributions, so equal files are expected everywhere. Nothing depends on
it: the check sums of what was written lie beside it and are compared on each reading.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from models.files import whole_file
from models.generated import ensure_folder, read_sums
from models.idx import file_md5, write_idx

FOLDER = "mnist-generated-v1"
"""Name of the folder in the cache. A change to the images needs a new number, since old folders stay."""

CHECKSUMS = "MD5SUMS"
"""Check sums in the form that ``md5sum -c MD5SUMS`` reads."""

SEEDS = {"train": 20101, "t10k": 20102}
"""Any two different numbers; these are the seeds of every generated set."""

SIDE = 28
SCALE = 3
SHIFTS = 7  # 0 to 6 pixels from the corner, so 3 each way
CHUNK = 1000  # images at a time: 784 kB, so that the work stays in cache

# Five columns by seven rows, as on character displays; one number a row, the highest of five bits on the left.
GLYPHS = (
    (0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110),
    (0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110),
    (0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111),
    (0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110),
    (0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010),
    (0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110),
    (0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110),
    (0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000),
    (0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110),
    (0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100),
)


def draw(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Make images and labels; the same arguments give the same arrays.

    Parameters
    ----------
    count : int
        Number of images; a multiple of 10 gives equally many of each class.
    seed : int
        Seed of the PCG64 bit generator.

    Returns
    -------
    images : numpy.ndarray
        uint8, shape ``(count, 28, 28)``, dark background.
    labels : numpy.ndarray
        uint8, shape ``(count,)``, 0 to 9, in random order.
    """
    bits = np.random.PCG64(seed)
    order = np.argsort(bits.random_raw(count), kind="stable")
    labels = (np.arange(count) % len(GLYPHS)).astype(np.uint8)[order]
    templates = _templates()
    images = np.empty((count, SIDE, SIDE), dtype=np.uint8)
    for first in range(0, count, CHUNK):
        chosen = labels[first : first + CHUNK]
        choices = _random_bytes(bits, len(chosen), 8)
        down, right = choices[:, 0] % SHIFTS, choices[:, 1] % SHIFTS
        brightness = 96 + choices[:, 2] % 160  # 96 to 255: always above most of the noise
        noise = _random_bytes(bits, len(chosen), SIDE * SIDE).reshape(-1, SIDE, SIDE)
        ink = templates[chosen, down, right] * brightness[:, None, None]
        images[first : first + CHUNK] = np.where(noise % 8 == 0, noise, ink)
    return images, labels


def ensure(cache_dir: str) -> str:
    """Return the folder of the generated set, making it first where there is none.

    Any number of processes, on any number of nodes, may call this at once. Each that finds nothing makes the set in a
    folder of its own and renames that folder; the first one stays and the others are thrown away.

    Parameters
    ----------
    cache_dir : str
        Folder for generated data; made if it is missing.

    Returns
    -------
    str
        ``cache_dir/mnist-generated-v1`` with four plain IDX files and ``MD5SUMS``.

    Raises
    ------
    DataError
        The cache can't be written.
    """
    return ensure_folder(
        cache_dir,
        FOLDER,
        _write,
        what="the generated stand-in for MNIST",
        room="60 MB",
        else_root="MNIST",
    )


def checksums(folder: str) -> dict[str, str]:
    """Read the check sums that were written with a generated set.

    Parameters
    ----------
    folder : str
        What `ensure` returned.

    Returns
    -------
    dict
        File name to md5 of the file, for the four IDX files.

    Raises
    ------
    DataError
        The check sums are missing or unreadable, so the set can't be trusted.
    """
    return read_sums(folder, CHECKSUMS, file_names())


def file_names() -> tuple[str, ...]:
    """Return the names of the four files of an MNIST-like set, without ``.gz``."""
    return tuple(f"{part}-{content}-ubyte" for part in SEEDS for content in ("images-idx3", "labels-idx1"))


def _write(folder: str) -> None:
    """Write the four files and their check sums into an existing folder."""
    sums = []
    for part, count in (("train", 60_000), ("t10k", 10_000)):
        images, labels = draw(count, SEEDS[part])
        for content, array in (("images-idx3", images), ("labels-idx1", labels)):
            name = f"{part}-{content}-ubyte"
            write_idx(os.path.join(folder, name), array)
            sums.append(f"{file_md5(array)}  {name}\n")
    with whole_file(os.path.join(folder, CHECKSUMS)) as stream:
        stream.write("".join(sums).encode("ascii"))


def _templates() -> NDArray[np.uint8]:
    """Return every glyph at every place: 0 or 1, shape ``(10, SHIFTS, SHIFTS, 28, 28)``."""
    places = np.zeros((len(GLYPHS), SHIFTS, SHIFTS, SIDE, SIDE), dtype=np.uint8)
    for digit, rows in enumerate(GLYPHS):
        dots = np.array([[row >> bit & 1 for bit in (4, 3, 2, 1, 0)] for row in rows], dtype=np.uint8)
        large = np.kron(dots, np.ones((SCALE, SCALE), dtype=np.uint8))
        height, width = large.shape
        for down in range(SHIFTS):
            for right in range(SHIFTS):
                top, left = (SIDE - height) // 2 - 3 + down, (SIDE - width) // 2 - 3 + right
                places[digit, down, right, top : top + height, left : left + width] = large
    return places


def _random_bytes(bits: np.random.PCG64, rows: int, columns: int) -> NDArray[np.uint8]:
    """Return random bytes of shape ``(rows, columns)``; ``columns`` is a multiple of 8. Alike on every byte order."""
    words: NDArray[np.uint64] = bits.random_raw(rows * columns // 8)
    return words.astype("<u8").view(np.uint8).reshape(rows, columns)
