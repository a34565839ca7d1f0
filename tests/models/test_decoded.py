"""Copies of decoded arrays: one decoding a version of a file, and none that could be of another one."""

import os

import numpy as np
import pytest

from models.decoded import FOLDER, kept


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(b"first")
    return path


class Decoder:
    """Decodes by returning its number, and counts how often."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return {"images": np.full((3, 2), self.times, np.uint8), "labels": np.arange(3)}


def copies(cache):
    return sorted(os.listdir(cache / FOLDER))


def test_a_file_is_decoded_once(source, tmp_path):
    """The second launch reads the copy: the same arrays, which it may write to."""
    decode = Decoder()
    first, second = (kept(str(tmp_path), str(source), "md5", decode) for _ in range(2))

    assert 1 == decode.times
    assert {name: array.tolist() for name, array in first.items()} == {
        name: array.tolist() for name, array in second.items()
    }
    assert [(np.uint8, True), (np.int64, True)] == [(a.dtype, a.flags.writeable) for a in second.values()]


@pytest.mark.parametrize("change", ["content", "time", "about"])
def test_another_version_of_the_file_is_decoded_anew(source, tmp_path, change):
    """Another size, another time or another sum to be checked: the old copy is not read, and goes."""
    decode = Decoder()
    kept(str(tmp_path), str(source), "md5", decode)
    if change == "content":
        source.write_bytes(b"second")
    elif change == "time":
        os.utime(source, ns=(1, 1))
    found = kept(str(tmp_path), str(source), "other" if change == "about" else "md5", decode)

    assert (2, 2, 1) == (decode.times, int(found["images"][0, 0]), len(copies(tmp_path)))


def test_files_have_copies_of_their_own(source, tmp_path):
    """Two files of the same content don't share a copy, nor does one remove the other's."""
    other = tmp_path / "labels.gz"
    other.write_bytes(b"first")
    decode = Decoder()
    for path in (source, other, source, other):
        kept(str(tmp_path), str(path), "md5", decode)

    assert (2, 2) == (decode.times, len(copies(tmp_path)))


@pytest.mark.parametrize("cut", [0, 10, -200])
def test_a_damaged_copy_is_made_anew(source, tmp_path, cut):
    """A copy that is cut off is not believed."""
    decode = Decoder()
    kept(str(tmp_path), str(source), "md5", decode)
    (copy,) = (tmp_path / FOLDER).iterdir()
    copy.write_bytes(copy.read_bytes()[:cut])
    again = [int(kept(str(tmp_path), str(source), "md5", decode)["images"][0, 0]) for _ in range(2)]

    assert ([2, 2], 2) == (again, decode.times)


def test_a_changed_byte_of_a_copy_is_seen(source, tmp_path):
    """Each array has a check sum of its own in the copy."""
    decode = Decoder()
    kept(str(tmp_path), str(source), "md5", decode)
    (copy,) = (tmp_path / FOLDER).iterdir()
    content = copy.read_bytes()
    copy.write_bytes(content.replace(bytes([1] * 6), bytes([7] * 6), 1))

    assert 2 == int(kept(str(tmp_path), str(source), "md5", decode)["images"][0, 0])


def test_without_a_folder_nothing_is_kept(source, tmp_path):
    """No cache folder, or one that can't be made: every launch decodes."""
    decode = Decoder()
    (tmp_path / "file").write_text("")
    for folder in ("", "", str(tmp_path / "file")):
        kept(folder, str(source), "md5", decode)

    assert 3 == decode.times


def test_what_can_t_be_decoded_leaves_no_copy(source, tmp_path):
    """An error of the decoder is the caller's, and nothing is kept of it."""

    def fails():
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        kept(str(tmp_path), str(source), "md5", fails)
    assert not (tmp_path / FOLDER).exists()
