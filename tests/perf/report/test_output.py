"""What a person named for a command to write to stays what it is."""

from __future__ import annotations

import os
import threading

import pytest

from perf.report.output import write_named


def test_a_file_is_replaced_and_a_new_one_made(tmp_path):
    """Its text is the one that was written last."""
    path = tmp_path / "page.html"
    for text in ("one", "two – ü"):
        write_named(path, text)
        assert text == path.read_text(encoding="utf-8")


def test_a_link_stays_one_and_its_target_is_written(tmp_path):
    """Also where the target is not there yet."""
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write_named(link, "text")

    assert link.is_symlink()
    assert "text" == target.read_text(encoding="utf-8")


def test_a_pipe_takes_the_text(tmp_path):
    """A file in its place would leave the reader waiting."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_named(pipe, "text")
    reader.join(60)

    assert ["text"] == read
    assert pipe.is_fifo()


def test_a_folder_is_an_error_that_says_so(tmp_path):
    """Nothing is written beside or into it."""
    with pytest.raises(IsADirectoryError):
        write_named(tmp_path, "text")
    assert [] == list(tmp_path.iterdir())
