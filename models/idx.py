"""The IDX format of MNIST: unsigned bytes in any number of dimensions, plain or gzip.

A file is two zero bytes, one byte for the type, one for the number of dimensions, a big-endian 32-bit size for each
dimension, then the values, last dimension fastest. Source: "The IDX file format" on the page of the MNIST database
(Y. LeCun, C. Cortes, C. J. C. Burges). Only the type of the MNIST files, 0x08, is read and written.

Headers are not believed: nothing is allocated for a size that the file can't hold.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import stat
import struct
import zlib
from typing import IO

import numpy as np
from numpy.typing import NDArray

from models.errors import DataError
from models.files import whole_file

UNSIGNED_BYTE = 0x08
TYPES = {
    0x08: "unsigned byte",
    0x09: "signed byte",
    0x0B: "short",
    0x0C: "int",
    0x0D: "float",
    0x0E: "double",
}

MAX_DIMENSIONS = 32
"""numpy before 2.0 makes no array of more dimensions."""

MAX_DEFLATE_RATIO = 1032
"""deflate can't shrink by more: 258 bytes for each 2 bits (zlib technical details, "Maximum Compression Factor")."""

CHUNK = 1 << 20
"""Bytes read at a time, so that memory grows with what a file holds and not with what its header says."""

REMEDY = "Copy or download the file again."


class IdxError(DataError):
    """A file is not the IDX file that was expected."""


def read_idx(path: str, expected_shape: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes.

    Parameters
    ----------
    path : str
        The file; read as gzip if its name ends in ``.gz``.
    expected_shape : tuple of int, optional
        The shape that the file must have. Without it any shape is accepted.

    Returns
    -------
    numpy.ndarray
        Writable array of uint8 with the file's shape.

    Raises
    ------
    IdxError
        The file is cut short, too long, of another type, number of dimensions or size, or no gzip file.
    OSError
        The file is missing or can't be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        # Opening a named pipe would wait for ever.
        raise IdxError(f"{path!r} is not a regular file. Expected an IDX file.")
    with open(path, "rb") as stored:
        size = os.fstat(stored.fileno()).st_size
        if not path.endswith(".gz"):
            return _parse(path, stored, expected_shape, size, exact=True)
        try:
            with gzip.GzipFile(fileobj=stored) as stream:
                return _parse(path, stream, expected_shape, MAX_DEFLATE_RATIO * size, exact=False)
        except EOFError:
            raise IdxError(
                f"{path!r} is cut short: the gzip data end early, after {size} bytes. {REMEDY}"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise IdxError(f"{path!r} is named as gzip but can't be unpacked: {error}. {REMEDY}") from error


def write_idx(path: str, array: NDArray[np.uint8]) -> None:
    """Write an array as an IDX file, whole or not at all. The same array gives the same bytes, as gzip too.

    Parameters
    ----------
    path : str
        The file to write or replace; gzip if its name ends in ``.gz``.
    array : numpy.ndarray
        uint8, 1 to 32 dimensions.

    Raises
    ------
    IdxError
        The array is of another type or has too many or no dimensions.
    OSError
        The file can't be written. Nothing is left behind.
    """
    start = header(array.shape)
    if array.dtype != np.uint8:
        raise IdxError(
            f"{path!r} was not written: the array is {array.dtype}, only uint8 can be written as IDX here."
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    with whole_file(path) as stored:
        if path.endswith(".gz"):
            # No name and no time in the header: they would make equal data differ.
            with gzip.GzipFile(filename="", mode="wb", fileobj=stored, mtime=0) as stream:
                stream.write(start)
                stream.write(flat.data)
        else:
            stored.write(start)
            stored.write(flat.data)


def header(shape: tuple[int, ...]) -> bytes:
    """Return the bytes before the values in an IDX file of unsigned bytes with this shape.

    Raises
    ------
    IdxError
        The format, or numpy, has no room for the shape.
    """
    if not 1 <= len(shape) <= MAX_DIMENSIONS or not all(0 <= size < 1 << 32 for size in shape):
        raise IdxError(
            f"shape {shape} doesn't fit an IDX file: 1 to {MAX_DIMENSIONS} dimensions below 2**32 are possible."
        )
    return struct.pack(f">HBB{len(shape)}I", 0, UNSIGNED_BYTE, len(shape), *shape)


def file_md5(array: NDArray[np.uint8]) -> str:
    """Return the md5 that ``md5sum`` prints for the plain IDX file of this array, so gzip needs no second reading.

    The sum finds damage and tells data sets apart; it is not used for security (and works on FIPS systems).
    """
    digest = hashlib.md5(header(array.shape), usedforsecurity=False)
    digest.update(np.ascontiguousarray(array).reshape(-1).data)
    return digest.hexdigest()


def _parse(
    path: str,
    stream: IO[bytes] | gzip.GzipFile,
    expected_shape: tuple[int, ...] | None,
    limit: int,
    exact: bool,
) -> NDArray[np.uint8]:
    """Read header and values; ``limit`` is the number of bytes in the stream: if not ``exact``, the most possible."""
    shape = _read_header(path, stream)
    if expected_shape is not None and shape != expected_shape:
        raise IdxError(
            f"{path!r} has shape {shape}, expected {expected_shape}: it is another file than its name says. {REMEDY}"
        )
    start, values = 4 + 4 * len(shape), math.prod(shape)
    if start + values > limit or (exact and start + values != limit):
        held = f"holds {limit}" if exact else f"can't unpack to more than {limit}"
        how = "cut short" if start + values > limit else "too long"
        raise IdxError(
            f"{path!r} is {how}: it {held} bytes, expected {start + values} for its shape {shape}. {REMEDY}"
        )
    content = _read_up_to(stream, values)
    if len(content) < values:
        raise IdxError(
            f"{path!r} is cut short: it has {len(content)} values, expected {values} for its shape {shape}. {REMEDY}"
        )
    # Reading to the end also makes gzip compare its own check sum.
    if stream.read(1):
        raise IdxError(f"{path!r} is too long: more than {values} values, expected shape {shape}. {REMEDY}")
    try:
        return np.frombuffer(content, dtype=np.uint8).reshape(shape)
    except ValueError as error:
        # A dimension of size 0 lets the others be larger than numpy allows.
        raise IdxError(f"{path!r} has shape {shape}, which numpy can't hold: {error}. {REMEDY}") from error


def _read_header(path: str, stream: IO[bytes] | gzip.GzipFile) -> tuple[int, ...]:
    """Return the shape that the header states, after checking type and number of dimensions."""
    magic = bytes(_read_up_to(stream, 4))
    if len(magic) < 4:
        raise IdxError(
            f"{path!r} is cut short: {len(magic)} bytes, expected an IDX header of 4 or more. {REMEDY}"
        )
    zeros, kind, dimensions = struct.unpack(">HBB", magic)
    if zeros != 0 or kind not in TYPES:
        hint = " It is a gzip file; its name should end in .gz." if magic[:2] == b"\x1f\x8b" else ""
        raise IdxError(
            f"{path!r} starts with {magic.hex()}, expected an IDX file (0000 08 and dimensions).{hint}"
        )
    if kind != UNSIGNED_BYTE:
        raise IdxError(
            f"{path!r} holds IDX type 0x{kind:02x} ({TYPES[kind]}), only 0x08 (unsigned byte) is read here."
        )
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise IdxError(f"{path!r} has {dimensions} dimensions, expected 1 to {MAX_DIMENSIONS}. {REMEDY}")
    sizes = _read_up_to(stream, 4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise IdxError(
            f"{path!r} is cut short: its header ends within the sizes of {dimensions} dimensions. {REMEDY}"
        )
    return struct.unpack(f">{dimensions}I", sizes)


def _read_up_to(stream: IO[bytes] | gzip.GzipFile, count: int) -> bytearray:
    """Read ``count`` bytes, or fewer if the stream ends before; memory grows with what arrives."""
    content = bytearray()
    while len(content) < count:
        chunk = stream.read(min(CHUNK, count - len(content)))
        if not chunk:
            break
        content += chunk
    return content
