"""Copies of decoded arrays: one decoding of each version of a file, and no copy that could be of another one."""

import os

import numpy as np
import pytest

from models.decoded import FOLDER, MOST_COPIES, kept

NAMES = ["images", "labels"]


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
    first, second = (kept(str(tmp_path), str(source), "md5", NAMES, decode) for _ in range(2))

    assert 1 == decode.times
    assert {name: array.tolist() for name, array in first.items()} == {
        name: array.tolist() for name, array in second.items()
    }
    assert [(np.uint8, True), (np.int64, True)] == [(a.dtype, a.flags.writeable) for a in second.values()]


@pytest.mark.parametrize("change", ["content", "time", "about"])
def test_another_version_of_the_file_is_decoded_anew(source, tmp_path, change):
    """Another size, another time or another sum to be checked: the old copy is not read."""
    decode = Decoder()
    kept(str(tmp_path), str(source), "md5", NAMES, decode)
    if change == "content":
        source.write_bytes(b"second")
    elif change == "time":
        os.utime(source, ns=(1, 1))
    found = kept(str(tmp_path), str(source), "other" if change == "about" else "md5", NAMES, decode)

    assert (2, 2, 2) == (decode.times, int(found["images"][0, 0]), len(copies(tmp_path)))


def test_versions_of_a_file_do_not_pile_up(source, tmp_path):
    """Four copies of one path stay and are read; a fifth version is kept when one of them has grown old."""
    decode = Decoder()

    def launch(moment):
        os.utime(source, ns=(moment, moment))
        kept(str(tmp_path), str(source), str(moment), NAMES, decode)

    for moment in range(1, MOST_COPIES + 2):
        launch(moment)
    crowded, (first, *_) = copies(tmp_path), sorted((tmp_path / FOLDER).iterdir(), key=os.path.getmtime)
    os.utime(first, (1, 1))
    launch(MOST_COPIES + 1)

    assert MOST_COPIES == len(crowded) == len(copies(tmp_path))
    assert first.name in crowded
    assert first.name not in copies(tmp_path)


def test_files_have_copies_of_their_own(source, tmp_path):
    """Two files of the same content don't share a copy, nor does one remove the other's."""
    other = tmp_path / "labels.gz"
    other.write_bytes(b"first")
    decode = Decoder()
    for path in (source, other, source, other):
        kept(str(tmp_path), str(path), "md5", NAMES, decode)

    assert (2, 2) == (decode.times, len(copies(tmp_path)))


@pytest.mark.parametrize("cut", [0, 10, -200])
def test_a_damaged_copy_is_made_anew(source, tmp_path, cut):
    """A copy that is cut off is not believed."""
    decode = Decoder()
    kept(str(tmp_path), str(source), "md5", NAMES, decode)
    (copy,) = (tmp_path / FOLDER).iterdir()
    copy.write_bytes(copy.read_bytes()[:cut])
    again = [int(kept(str(tmp_path), str(source), "md5", NAMES, decode)["images"][0, 0]) for _ in range(2)]

    assert ([2, 2], 2) == (again, decode.times)


def test_no_changed_bit_of_a_copy_is_believed_or_stops_a_launch(source, tmp_path):
    """Wherever a bit flips, the arrays are those that were decoded: from the copy, or decoded anew."""
    decode = Decoder()
    kept(str(tmp_path), str(source), "md5", NAMES, decode)
    (copy,) = (tmp_path / FOLDER).iterdir()
    content = copy.read_bytes()
    for place in range(0, len(content), 3):
        copy.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        found = kept(str(tmp_path), str(source), "md5", NAMES, Decoder())

        assert [[[1, 1]] * 3, [0, 1, 2]] == [found[name].tolist() for name in NAMES]


def test_without_a_folder_nothing_is_kept(source, tmp_path):
    """No cache folder, or one that can't be made: every launch decodes."""
    decode = Decoder()
    (tmp_path / "file").write_text("")
    for folder in ("", "", str(tmp_path / "file")):
        kept(folder, str(source), "md5", NAMES, decode)

    assert 3 == decode.times


def test_what_can_t_be_decoded_leaves_no_copy(source, tmp_path):
    """An error of the decoder is the caller's, and nothing is kept of it."""

    def fails():
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        kept(str(tmp_path), str(source), "md5", NAMES, fails)
    assert not (tmp_path / FOLDER).exists()
