"""IDX files: what is written comes back, and what is damaged is named."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import struct
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from models.idx import IdxError, file_md5, header, read_idx, write_idx

unhurried = settings(deadline=None)  # files are written and synced; a busy disk is no failure

SUFFIXES = pytest.mark.parametrize("suffix", ["", ".gz"])

arrays = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))


@st.composite
def damage(draw: st.DrawFn, content: bytes) -> bytes:
    """A copy of the content with one byte changed."""
    position = draw(st.integers(0, len(content) - 1))
    change = draw(st.integers(1, 255))
    return content[:position] + bytes([content[position] ^ change]) + content[position + 1 :]


def read_bytes(content: bytes, suffix: str, shape: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """Read content as if it were a file; hypothesis needs a new folder for each example."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"f{suffix}")
        Path(path).write_bytes(content)
        return read_idx(path, shape)


def plain(array: NDArray[np.uint8]) -> bytes:
    """The bytes of a plain IDX file, put together without the writer."""
    dimensions = array.ndim
    return struct.pack(f">BBBB{dimensions}I", 0, 0, 8, dimensions, *array.shape) + array.tobytes()


@SUFFIXES
@unhurried
@given(array=arrays)
def test_what_is_written_comes_back(suffix: str, array: NDArray[np.uint8]) -> None:
    """An array keeps shape and values, and the result can be written to (torch warns otherwise)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"f{suffix}")
        write_idx(path, array)
        back = read_idx(path, array.shape)
        assert [f"f{suffix}"] == os.listdir(folder)
    assert array.shape == back.shape
    assert array.tobytes() == back.tobytes()
    assert back.flags.writeable


@unhurried
@given(array=arrays)
def test_the_bytes_are_those_of_the_format(array: NDArray[np.uint8]) -> None:
    """A written file is byte for byte what the format's description says, and `file_md5` is its md5."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        write_idx(path, array)
        content = Path(path).read_bytes()
    assert plain(array) == content
    assert hashlib.md5(content).hexdigest() == file_md5(array)


def test_gzip_files_are_reproducible(tmp_path: Path) -> None:
    """The same array gives the same gzip file whatever it is called."""
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)
    write_idx(str(tmp_path / "a.gz"), array)
    write_idx(str(tmp_path / "b.gz"), array)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_transposed_array_is_written_in_its_own_order(tmp_path: Path) -> None:
    """Memory order does not matter: the last dimension is the fastest in the file."""
    array = np.arange(6, dtype=np.uint8).reshape(2, 3).T
    write_idx(str(tmp_path / "a"), array)
    assert [[0, 3], [1, 4], [2, 5]] == read_idx(str(tmp_path / "a"), (3, 2)).tolist()
    assert hashlib.md5((tmp_path / "a").read_bytes()).hexdigest() == file_md5(array)


@SUFFIXES
@unhurried
@given(array=arrays, data=st.data())
def test_a_file_that_is_cut_anywhere_is_named(
    suffix: str, array: NDArray[np.uint8], data: st.DataObject
) -> None:
    """Whichever number of bytes is missing at the end, the error names the file."""
    content = plain(array) if not suffix else gzip.compress(plain(array), mtime=0)
    kept = data.draw(st.integers(0, len(content) - 1))
    # One byte is not yet recognizable as the start of a gzip file.
    message = "is named as gzip but can't be unpacked" if suffix and kept == 1 else "is cut short"
    with pytest.raises(IdxError, match=f"f{suffix}' {message}"):
        read_bytes(content[:kept], suffix)


@SUFFIXES
@unhurried
@given(array=arrays, extra=st.binary(min_size=1, max_size=9))
def test_a_file_that_is_too_long_is_named(suffix: str, array: NDArray[np.uint8], extra: bytes) -> None:
    """Bytes after the last value are an error, inside a gzip file too."""
    content = plain(array) + extra
    with pytest.raises(IdxError, match=f"f{suffix}' is too long"):
        read_bytes(content if not suffix else gzip.compress(content), suffix)


@unhurried
@given(array=arrays, extra=st.binary(min_size=1, max_size=9).filter(any))
def test_bytes_after_the_gzip_data_are_an_error(array: NDArray[np.uint8], extra: bytes) -> None:
    """What follows the compressed data is not skipped in silence (zero padding is: gzip itself allows it)."""
    with pytest.raises(IdxError, match=r"f\.gz"):
        read_bytes(gzip.compress(plain(array)) + extra, ".gz")


@unhurried
@given(array=arrays.filter(lambda a: a.size > 0), data=st.data())
def test_a_changed_header_byte_is_an_error(array: NDArray[np.uint8], data: st.DataObject) -> None:
    """Any other byte in the header is seen when the shape is known."""
    content = plain(array)
    start = len(header(array.shape))
    damaged = data.draw(damage(content[:start])) + content[start:]
    with pytest.raises(IdxError):
        read_bytes(damaged, "", array.shape)


@unhurried
@given(array=arrays, data=st.data())
def test_a_changed_byte_in_a_gzip_file_never_changes_the_values(
    array: NDArray[np.uint8], data: st.DataObject
) -> None:
    """A damaged gzip file is an error, or (time, flags and name in its header) holds the same array."""
    damaged = data.draw(damage(gzip.compress(plain(array), mtime=0)))
    with contextlib.suppress(IdxError):
        back = read_bytes(damaged, ".gz")
        assert (array.shape, array.tobytes()) == (back.shape, back.tobytes())


@unhurried
@given(content=st.binary(max_size=64))
def test_arbitrary_bytes_raise_nothing_else(content: bytes) -> None:
    """Whatever a file holds, the reader returns an array or raises IdxError."""
    for suffix in ("", ".gz"):
        try:
            read_bytes(content, suffix)
        except IdxError:
            continue


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", r"IDX type 0x0d \(float\), only 0x08"),
        (b"\0\0\x08\x00\x07", "has 0 dimensions, expected 1 to 32"),
        (b"\0\0\x08\xff" + bytes(1020), "has 255 dimensions, expected 1 to 32"),
        (b"\0\0\x07\x01\0\0\0\x00", "starts with 00000701, expected an IDX file"),
        (b"\x89PNG\r\n\x1a\n", "starts with 89504e47, expected an IDX file"),
        (b"\0\0\x08\x03" + bytes(4) + b"\xff" * 8, "which numpy can't hold|has shape"),
    ],
    ids=["type", "no dimensions", "too many dimensions", "unknown type", "another format", "empty but huge"],
)
def test_other_contents_are_named(content: bytes, message: str) -> None:
    """Each kind of wrong start says what was found and what was expected."""
    shape = (1,) if b"\xff" * 8 in content else None
    with pytest.raises(IdxError, match=message):
        read_bytes(content, "", shape)


def test_a_gzip_file_without_its_suffix_says_so() -> None:
    """A renamed gzip file gets a hint instead of a puzzle."""
    with pytest.raises(IdxError, match=r"It is a gzip file; its name should end in \.gz"):
        read_bytes(gzip.compress(plain(np.zeros(3, np.uint8))), "")


def test_a_plain_file_named_gz_says_so() -> None:
    """An unpacked file that kept its suffix is named."""
    with pytest.raises(IdxError, match=r"f\.gz' is named as gzip but can't be unpacked"):
        read_bytes(plain(np.zeros(3, np.uint8)), ".gz")


@SUFFIXES
def test_another_shape_than_expected_is_an_error(suffix: str, tmp_path: Path) -> None:
    """Labels in place of images are noticed; both shapes are in the message."""
    path = str(tmp_path / f"a{suffix}")
    write_idx(path, np.zeros(6, np.uint8))
    with pytest.raises(IdxError, match=r"has shape \(6,\), expected \(2, 3\)"):
        read_idx(path, (2, 3))


@SUFFIXES
def test_a_hostile_header_allocates_nothing(suffix: str) -> None:
    """A header that claims 2**62 values in a file of 40 bytes is refused before memory is asked for."""
    content = struct.pack(">BBBBII", 0, 0, 8, 2, 1 << 31, 1 << 31) + bytes(28)
    tracemalloc.start()
    try:
        with pytest.raises(IdxError, match="is cut short"):
            read_bytes(gzip.compress(content) if suffix else content, suffix)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    """A pipe is an error at once; opening it would wait for a writer."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(IdxError, match="is not a regular file"):
        read_idx(str(tmp_path / "pipe"))


def test_a_missing_file_is_the_systems_error(tmp_path: Path) -> None:
    """A missing file is FileNotFoundError, with its path."""
    with pytest.raises(FileNotFoundError, match="missing"):
        read_idx(str(tmp_path / "missing"))


def test_only_bytes_in_one_to_32_dimensions_are_written(tmp_path: Path) -> None:
    """Arrays that the format, as read here, can't hold are refused and nothing is written."""
    with pytest.raises(IdxError, match="the array is int64, only uint8"):
        write_idx(str(tmp_path / "a"), np.zeros(3, np.int64))
    with pytest.raises(IdxError, match=r"shape \(\) doesn't fit"):
        write_idx(str(tmp_path / "a"), np.array(1, np.uint8))
    with pytest.raises(IdxError, match="doesn't fit"):
        header((1 << 32,))
    assert [] == list(tmp_path.iterdir())


def test_quotes_and_control_characters_in_a_path_are_escaped(tmp_path: Path) -> None:
    """A hostile file name can't break the line of the message."""
    path = tmp_path / "a\nb"
    path.write_bytes(b"")
    with pytest.raises(IdxError) as caught:
        read_idx(str(path))
    assert "\n" not in str(caught.value)
