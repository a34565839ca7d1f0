from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.progress import Progress, read_progress


def told(folder, text):
    """Write what a rank told, and return how it is read."""
    (folder / "progress-3.json").write_text(text, encoding="utf-8")
    return read_progress(str(folder), 3)


def test_what_a_rank_told_is_read(tmp_path):
    """Steps in all, those of a moment, and how long that was."""
    assert Progress(812, 12, 6.0) == told(tmp_path, '{"steps": 812, "taken": 12, "seconds": 6.0}')


def test_a_rank_that_told_nothing_has_no_progress(tmp_path):
    """It was stuck in native code, or ended in time."""
    assert read_progress(str(tmp_path), 0) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"steps": 1}',
        '{"steps": null, "taken": 0, "seconds": 1}',
        '{"steps": 3, "taken": 4, "seconds": 1}',
        '{"steps": 3, "taken": -1, "seconds": 1}',
        '{"steps": 3, "taken": 1, "seconds": 0}',
        '{"steps": 3, "taken": 1, "seconds": Infinity}',
        '{"steps": Infinity, "taken": 1, "seconds": 1}',
        '{"steps": 3, "taken": 1, "seconds": NaN}',
    ],
)
def test_what_can_not_be_meant_is_nothing(tmp_path, text):
    """A file that was cut or made up neither ends the driver nor calls a launch slow."""
    assert told(tmp_path, text) is None


@given(st.text())
def test_any_text_is_read_without_an_error(tmp_path_factory, text):
    """The folder may hold anything."""
    told(tmp_path_factory.mktemp("progress"), json.dumps(text) if len(text) % 2 else text)


@pytest.mark.parametrize(("taken", "words"), [(0, "no step"), (1, "1 step"), (12, "12 steps")])
def test_progress_reads_as_words(taken, words):
    """In words that follow a rank."""
    assert f"took {words} in 0.4 s" == str(Progress(99, taken, 0.4))
