"""A stand-in for CIFAR-100 where no data can be had: 50,000 + 10,000 colour images in a hundred classes, made here.

Each class is a mosaic of four by four cells; a cell is red, green and blue, each of them low or high. Every pixel gets
noise of its own. A network tells the classes apart within a few dozen steps. It is not CIFAR-100 and is never called
so; losses and accuracies on it say that training works and nothing more.

The files are those of CIFAR-100's Python version, opcode for opcode as Python 2 pickled them, so that torchvision's
own CIFAR100 could read them too. They don't depend on the versions of Python and numpy that write them: only raw
64-bit words of numpy's PCG64 (a promised stream, NEP 19) and integer arithmetic are used. Nothing depends on it: the
check sums of what was written lie beside it and are compared on each reading.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import struct

import numpy as np
from numpy.typing import NDArray

from models.files import whole_file
from models.generated import ensure_folder, read_sums

FOLDER = "cifar-100-generated-v1"
"""Name of the folder in the cache. A change to the images needs a new number, since old folders stay."""

CHECKSUMS = "MD5SUMS"
"""Check sums in the form that ``md5sum -c MD5SUMS`` reads."""

FILES = ("train", "test", "meta")
SAMPLES = {"train": 50_000, "test": 10_000}
SEEDS = {"train": 20103, "test": 20104}
"""Any two different numbers; these are the seeds of every generated set."""

PATTERN_SEED = 20105
"""Seed of the hundred mosaics, which both parts share."""

SIDE = 32
VALUES = 3 * SIDE * SIDE
CLASSES = 100
COARSE_CLASSES = 20
CELLS = 4
LOW, HIGH, NOISE = 32, 192, 64  # 32 to 255 with noise: no value is cut off
CHUNK = 500  # images at a time: 1.5 MB, so that the work stays in cache


def draw(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Make images and labels; the same arguments give the same arrays.

    Parameters
    ----------
    count : int
        Number of images; a multiple of 100 gives equally many of each class.
    seed : int
        Seed of the PCG64 bit generator.

    Returns
    -------
    images : numpy.ndarray
        uint8, shape ``(count, 3072)``: red, green and blue, each 32 by 32, row by row, as in CIFAR-100's files.
    labels : numpy.ndarray
        int64, shape ``(count,)``, 0 to 99, in random order.
    """
    bits = np.random.PCG64(seed)
    order = np.argsort(bits.random_raw(count), kind="stable")
    labels = (np.arange(count, dtype=np.int64) % CLASSES)[order]
    mosaics = _mosaics()
    images = np.empty((count, VALUES), dtype=np.uint8)
    for first in range(0, count, CHUNK):
        chosen = labels[first : first + CHUNK]
        noise = _random_bytes(bits, len(chosen) * VALUES).reshape(-1, VALUES)
        images[first : first + CHUNK] = mosaics[chosen] + noise % np.uint8(NOISE)
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
        ``cache_dir/cifar-100-generated-v1`` with the files ``train``, ``test``, ``meta`` and ``MD5SUMS``.

    Raises
    ------
    DataError
        The cache can't be written.
    """
    return ensure_folder(
        cache_dir,
        FOLDER,
        _write,
        what="the generated stand-in for CIFAR-100",
        room="190 MB",
        else_root="CIFAR-100",
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
        File name to md5 of the file, for each of `FILES`.

    Raises
    ------
    DataError
        The check sums are missing or unreadable, so the set can't be trusted.
    """
    return read_sums(folder, CHECKSUMS, FILES)


def part_file(name: str, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> bytes:
    """Return the bytes of a file ``train`` or ``test`` with these images and labels.

    Parameters
    ----------
    name : str
        Names the images: ``train_00000.png``.
    images : numpy.ndarray
        uint8, shape ``(samples, 3072)``.
    labels : numpy.ndarray
        int64, shape ``(samples,)``, 0 to 99. Five neighbouring classes make a coarse one.
    """
    coarse = labels // (CLASSES // COARSE_CLASSES)
    return _dictionary(
        {
            "filenames": _plain([f"{name}_{index:05d}.png" for index in range(len(images))]),
            "batch_label": _plain(f"generated {name} batch 1 of 1"),
            "fine_labels": _plain(labels.tolist()),
            "coarse_labels": _plain(coarse.tolist()),
            "data": _array(images),
        }
    )


def meta_file() -> bytes:
    """Return the bytes of the file ``meta``, which names the classes."""
    return _dictionary(
        {
            "fine_label_names": _plain([f"mosaic_{label:02d}" for label in range(CLASSES)]),
            "coarse_label_names": _plain([f"mosaics_{label:02d}" for label in range(COARSE_CLASSES)]),
        }
    )


def _write(folder: str) -> None:
    """Write the three files and their check sums into an existing folder."""
    sums = []
    for name in FILES:
        content = part_file(name, *draw(SAMPLES[name], SEEDS[name])) if name in SAMPLES else meta_file()
        with whole_file(os.path.join(folder, name)) as stream:
            stream.write(content)
        sums.append(f"{hashlib.md5(content, usedforsecurity=False).hexdigest()}  {name}\n")
    with whole_file(os.path.join(folder, CHECKSUMS)) as stream:
        stream.write("".join(sums).encode("ascii"))


def _mosaics() -> NDArray[np.uint8]:
    """Return the images of all classes without noise, shape ``(100, 3072)``."""
    cells = _random_bytes(np.random.PCG64(PATTERN_SEED), CLASSES * 3 * CELLS * CELLS) >> 7  # the highest bit
    colours = (LOW + (HIGH - LOW) * cells).astype(np.uint8).reshape(CLASSES, 3, CELLS, CELLS)
    large = colours.repeat(SIDE // CELLS, axis=2).repeat(SIDE // CELLS, axis=3)
    return large.reshape(CLASSES, VALUES)


def _random_bytes(bits: np.random.PCG64, count: int) -> NDArray[np.uint8]:
    """Return random bytes; `count` is a multiple of 8. Alike on every byte order."""
    words: NDArray[np.uint64] = bits.random_raw(count // 8)
    return words.astype("<u8").view(np.uint8)


# Pickles of protocol 2. Values that Python 3 pickles as Python 2 did come from pickle.dumps; numpy's arrays would name
# a module whose name changed with numpy 2, so theirs are put together here.


def _dictionary(values: dict[str, bytes]) -> bytes:
    """Return a whole pickle of a dictionary whose values are pickled already."""
    items = b"".join(_plain(key) + value for key, value in values.items())
    return pickle.PROTO + b"\x02" + pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS + pickle.STOP


def _plain(value: object) -> bytes:
    """Return the opcodes of a list, string or number, without the first (protocol) and the last (stop)."""
    return pickle.dumps(value, protocol=2)[2:-1]


def _array(array: NDArray[np.uint8]) -> bytes:
    """Return the opcodes of a two-dimensional array: an empty one, then its state, as ``ndarray.__reduce__`` says."""
    empty = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        + _plain((0,))
        + _string("b")
        + pickle.TUPLE3
    )
    kind = b"cnumpy\ndtype\n" + _string("u1") + _plain(0) + _plain(1) + pickle.TUPLE3 + pickle.REDUCE
    kind += pickle.MARK + _plain(3) + _string("|") + _plain(None) * 3 + _plain(-1) * 2 + _plain(0)
    kind += pickle.TUPLE + pickle.BUILD
    content = pickle.BINSTRING + struct.pack("<i", array.nbytes) + array.tobytes()
    state = pickle.MARK + _plain(1) + _plain(array.shape) + kind + pickle.NEWFALSE + content + pickle.TUPLE
    return empty + pickle.REDUCE + state + pickle.BUILD


def _string(text: str) -> bytes:
    """Return the opcode of a Python 2 string, which Python 3 no longer writes."""
    return pickle.SHORT_BINSTRING + bytes([len(text)]) + text.encode("ascii")
