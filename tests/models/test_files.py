"""Files are written whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from models.files import sync_folder, whole_file


def test_a_finished_block_puts_the_file_in_place_alone(tmp_path: Path) -> None:
    """After the block the file has its content and nothing else lies in the folder."""
    with whole_file(str(tmp_path / "a")) as stream:
        stream.write(b"new")
        assert not (tmp_path / "a").exists()
    assert [tmp_path / "a"] == list(tmp_path.iterdir())
    assert b"new" == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("interruption", [OSError("disk full"), KeyboardInterrupt()])
def test_an_interrupted_block_leaves_the_old_file(tmp_path: Path, interruption: BaseException) -> None:
    """An error in the block keeps the old content and removes the temporary file."""
    (tmp_path / "a").write_bytes(b"old")

    def write() -> None:
        with whole_file(str(tmp_path / "a")) as stream:
            stream.write(b"half")
            raise interruption

    with pytest.raises(type(interruption)):
        write()
    assert [tmp_path / "a"] == list(tmp_path.iterdir())
    assert b"old" == (tmp_path / "a").read_bytes()


def test_a_failing_rename_leaves_no_temporary_file(tmp_path: Path) -> None:
    """Where the target is a folder, the error is raised and the temporary file is gone."""
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError), whole_file(str(tmp_path / "a")) as stream:
        stream.write(b"new")
    assert [tmp_path / "a"] == list(tmp_path.iterdir())


def test_the_mode_is_what_the_umask_allows(tmp_path: Path) -> None:
    """Colleagues who share a folder can read the file where the umask lets them."""
    old = os.umask(0o027)
    try:
        with whole_file(str(tmp_path / "a")) as stream:
            stream.write(b"x")
    finally:
        os.umask(old)
    assert 0o640 == stat.S_IMODE((tmp_path / "a").stat().st_mode)


def test_a_relative_path_without_folder_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is written into the current folder."""
    monkeypatch.chdir(tmp_path)
    with whole_file("a") as stream:
        stream.write(b"x")
    assert b"x" == (tmp_path / "a").read_bytes()


def test_a_folder_that_refuses_fsync_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems refuse to sync folders, and a folder may be gone; neither stops the work."""

    def refuse(descriptor: int) -> None:
        raise OSError("not supported")

    sync_folder(str(tmp_path / "missing"))
    monkeypatch.setattr(os, "fsync", refuse)
    sync_folder(str(tmp_path))
