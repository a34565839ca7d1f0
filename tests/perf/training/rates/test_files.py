from __future__ import annotations

import os

import pytest
import torch

from perf.training.rates import files
from perf.training.rates.files import checkpoint_write, drop, file_reads, largest_files, read, resident_share
from perf.training.rates.timing import Timer

TIMER = Timer(lambda: None, 0.02)
CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path):
    """Files of 10, 30 and 20 pages in folders, an empty one, and a link to a large one outside."""
    inside = tmp_path / "data"
    (inside / "deep").mkdir(parents=True)
    for name, pages in (("a", 10), ("deep/b", 30), ("deep/c", 20), ("empty", 0)):
        (inside / name).write_bytes(os.urandom(4096 * pages))
    (tmp_path / "outside").write_bytes(bytes(4096 * 100))
    (inside / "link").symlink_to(tmp_path / "outside")
    return inside


def test_the_largest_files_come_first_and_only_as_many_as_needed(folder):
    """Links lead out of the data root and are left alone; so are empty files."""
    names = [os.path.basename(path) for path in largest_files(str(folder), 4096 * 45)]

    assert ["b", "c"] == names
    assert 3 == len(largest_files(str(folder), 2**40))


def test_hidden_files_are_somebodys_work_in_progress(folder):
    """What is being written into a cache has a hidden name, and is gone when it is whole."""
    (folder / ".largest.npz.1234.tmp").write_bytes(bytes(2**20))

    assert not [path for path in largest_files(str(folder), 2**40) if ".largest" in path]


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    """Nothing to read is an answer."""
    assert [] == largest_files(str(tmp_path / "nowhere"), 1)


def test_reading_stops_at_what_was_asked_for(folder, monkeypatch):
    """Whole files until the last one, whatever the size of a chunk."""
    monkeypatch.setattr(files, "CHUNK", 1000)
    paths = [str(folder / "a"), str(folder / "deep" / "b")]

    assert 4096 * 15 == read(paths, 4096 * 15)
    assert 4096 * 40 == read(paths, 2**40)


def test_the_data_root_is_read_where_it_holds_enough(folder, tmp_path):
    """What was read and how cold it was stands beside the rate."""
    cache = tmp_path / "cache"
    cache.mkdir()
    found = dict(file_reads((str(folder), str(cache)), TIMER, 4096 * 45, 4096))

    assert ["file_read", "file_read_cached"] == list(found)
    for rate in found.values():
        assert rate.value
        assert (str(folder), 2, 4096 * 45, False) == tuple(
            rate.about[key] for key in ("folder", "files", "bytes", "scratch")
        )
    assert "asked to drop" in found["file_read"].about["page_cache"]
    assert "read just before" == found["file_read_cached"].about["page_cache"]


def test_without_data_a_scratch_file_is_read_and_removed(folder, tmp_path):
    """Too little data tells no rate; the scratch file lies in the cache folder, and not for long."""
    cache = tmp_path / "cache"
    cache.mkdir()
    found = dict(file_reads((None, str(cache)), TIMER, 4096 * 8, 4096))

    assert (str(cache), True, 4096 * 8) == tuple(
        found["file_read"].about[key] for key in ("folder", "scratch", "bytes")
    )
    assert [] == list(cache.iterdir())


def test_a_folder_that_can_not_be_written_gives_a_reason(tmp_path):
    """The card goes on without this rate."""
    found = dict(file_reads((None, str(tmp_path / "nowhere")), TIMER, 4096, 4096))

    assert [None, None] == [rate.value for rate in found.values()]
    assert "No such file or directory" in found["file_read"].reason
    assert "can't be written to" in checkpoint_write(str(tmp_path / "nowhere"), CPU, TIMER, 4096)[1].reason


def test_the_page_cache_is_looked_at(folder):
    """Files that were just read lie in it; after the kernel was asked to drop them fewer do, or as many."""
    paths = [str(folder / "deep" / "b")]
    read(paths, 2**40)
    before = resident_share(paths)
    os.sync()
    drop(paths)
    after = resident_share(paths)

    assert before is None or 1.0 == before
    assert (after is None) == (before is None)
    assert after is None or 0.0 <= after <= 1.0


def test_what_can_not_be_told_of_the_page_cache_is_none(folder, monkeypatch):
    """Linux says of a file that one may not write that every page is there; an empty file has no pages."""
    assert resident_share([str(folder / "empty")]) is None
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert resident_share([str(folder / "a")]) is None


def test_a_checkpoint_is_synced_and_removed(tmp_path, monkeypatch):
    """Every repetition writes a file of the size anew and ends with fsync."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    name, rate = checkpoint_write(str(tmp_path), CPU, TIMER, 40_000)

    assert "checkpoint_write" == name
    assert (40_000, str(tmp_path), True) == tuple(rate.about[key] for key in ("bytes", "folder", "fsync"))
    assert len(rate.repetitions) + 1 == len(synced)
    assert min(synced) > 40_000
    assert [] == list(tmp_path.iterdir())
