from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.replay import TableError, main, read_rows

HISTORY = Path(__file__).parents[1] / "data" / "throughput_history.csv"
HEADER = "benchmark,framework,system,gpus,date,images_per_s\n"


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a table and returns its path."""

    def write(text: str, encoding: str = "utf-8") -> str:
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode(encoding))
        return str(path)

    return write


def test_the_published_history_has_three_provisional_misses(capsys):
    """Of 39 judgements exactly three miss, all on Puhti on 2023-05-08 and against one earlier occasion."""
    assert 0 == main([str(HISTORY)])
    lines = capsys.readouterr().out.splitlines()
    misses = [line for line in lines if line.startswith("miss")]
    assert 3 == len(misses)
    expected = ("DeepSpeed, synthetic data x4", "DeepSpeed, synthetic data x8", "Horovod, synthetic x8")
    for miss, series in zip(misses, expected, strict=True):
        assert miss.startswith("miss, provisional")
        assert f"{series} on puhti, 2023-05-08" in miss
        assert "1 earlier occasion: 2022-05-18" in miss
    (incomplete,) = [line for line in lines if line.startswith("did not complete")]
    assert "line 21: Horovod, Imagenet data x8 on puhti, 2022-05-18" in incomplete
    assert "(ERROR)" in incomplete
    assert "39 judgements, 3 misses (3 provisional), 1 did not complete, 32 with nothing earlier" in lines[-2]
    assert "Waived: the 5 launches" in lines[-1]


def test_further_series_are_judged_by_the_same_rule(table, capsys):
    """A firm miss, a repeated one and a lone row are told apart, whatever the order of columns and rows."""
    dates = [f"2026-{month:02d}-01" for month in (5, 1, 2, 3, 4)]
    text = "date,images_per_s,note,system,gpus,framework,benchmark\r\n" + "\r\n".join(
        f'{date},{rate},x,roihu,4,torch,"ViT, real"'
        for date, rate in zip(dates, (88, 100.5, 100, 101, 88.1), strict=True)
    )
    assert 0 == main([table(text + "\r\n\r\n2026-01-01,7,,roihu,8,,solo\r\n", "utf-8-sig")])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:18].strip() for line in lines if line.startswith("miss")] == ["miss", "miss again"]
    assert "ViT, real x4 on roihu, 2026-04-01" in lines[0]
    assert "3 earlier occasions: 2026-01-01, 2026-02-01, 2026-03-01" in lines[1]
    assert "4 judgements, 2 misses (0 provisional), 0 did not complete, 2 with nothing earlier" in lines[-2]


@pytest.mark.parametrize("word", ["ERROR", "error", "TIMEOUT", "n/a", "", "nan", "inf"])
def test_a_word_in_place_of_a_number_did_not_complete(word, table, capsys):
    """A word or nothing where the number should be is listed, not judged."""
    assert 0 == main([table(f"{HEADER}DDP,torch,puhti,4,2026-01-01,{word}\n")])
    assert "did not complete   line 2: DDP x4 on puhti" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("DDP,torch,puhti,4,2026-01-01,12a", "line 3: images_per_s must be a positive number"),
        ("DDP,torch,puhti,4,2026-01-01,0", "got '0'"),
        ("DDP,torch,puhti,4,2026-01-01,-5", "got '-5'"),
        ("DDP,torch,puhti,4,2026-01-01,1_000", "got '1_000'"),
        ("DDP,torch,puhti,4,2026-01-01,1e999", "got '1e999'"),
        ("DDP,torch,puhti,4,2026-01-01,\u0661\u0662", "images_per_s must be"),
        ("DDP,torch,puhti,four,2026-01-01,5", "gpus must be a whole number of at least 1, got 'four'"),
        ("DDP,torch,puhti,0,2026-01-01,5", "gpus must be"),
        ("DDP,torch,puhti,4,01.02.2026,5", "date must be written as 2026-11-27, got '01.02.2026'"),
        ("DDP,torch,puhti,4,2026-02-30,5", "date must be"),
        (",torch,puhti,4,2026-01-01,5", "benchmark is empty"),
        ("DDP,torch,,4,2026-01-01,5", "system is empty"),
        ("DDP,torch,puhti,4,2026-01-01", "the line ends before the column images_per_s"),
        ("DDP, real,torch,puhti,4,2026-01-01,5", "more fields than columns"),
        ('DDP,"torch"x,puhti,4,2026-01-01,5', "not a CSV table"),
    ],
)
def test_a_bad_line_is_named(row, words, table, capsys):
    """What can't be understood is an error with file, line, column and what stood there."""
    path = table(f"{HEADER}DDP,torch,puhti,4,2025-01-01,5\n{row}\n")
    assert 2 == main([path])
    err = capsys.readouterr().err
    assert f"{path}, line 3" in err
    assert words in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: no column benchmark, framework"),
        ("benchmark,framework,system,gpus,date\n", "no column images_per_s"),
        ("benchmark,framework,system,gpus,date,images_per_s,date\n", "the column date stands there twice"),
    ],
)
def test_a_bad_header_is_named(text, words, table, capsys):
    """A missing or repeated column is an error that names it."""
    assert 2 == main([table(text)])
    assert words in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_an_error(tmp_path, capsys):
    """A missing file, and one that is not UTF-8, are errors, not tracebacks."""
    assert 2 == main([str(tmp_path / "no.csv")])
    assert "can't be read" in capsys.readouterr().err
    (tmp_path / "latin.csv").write_bytes(HEADER.encode() + b"DDP,torch,puht\xe4,4,2026-01-01,5\n")
    assert 2 == main([str(tmp_path / "latin.csv")])
    assert "not UTF-8" in capsys.readouterr().err


def test_names_cannot_command_the_terminal(table, capsys):
    """Control characters in a name are printed escaped."""
    main([table(f"{HEADER}\x1b[31mDDP,torch,puhti,4,2026-01-01,ERROR\n")])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31mDDP" in out


@settings(max_examples=100)
@given(st.lists(st.text(max_size=60), max_size=6))
def test_any_text_is_read_or_refused(lines):
    """Whatever stands in the file, it is read, or refused with a TableError: nothing else is raised."""
    with contextlib.suppress(TableError):
        assert isinstance(read_rows([HEADER, *[line + "\n" for line in lines]], "any.csv"), list)
