from __future__ import annotations

import io

import pytest

from perf.report.console import make_console, usable


@pytest.mark.parametrize("columns", ["0", "-5", "", "wide", "\u00b2"])
def test_a_width_that_is_none_is_as_if_unset(monkeypatch, columns):
    """Something is drawn, in the columns of the terminal, or in 80."""
    monkeypatch.delenv("COLUMNS", raising=False)
    width = make_console(io.StringIO()).width
    monkeypatch.setenv("COLUMNS", columns)
    out = io.StringIO()
    console = make_console(out)
    console.print("hello")

    assert (width, "hello\n") == (console.width, out.getvalue())


def test_a_width_that_is_asked_for_counts(monkeypatch):
    """COLUMNS says how wide tables may be."""
    monkeypatch.setenv("COLUMNS", "133")

    assert 133 == make_console(io.StringIO()).width


def test_nothing_else_is_left_out_of_the_environment():
    """NO_COLOR, TERM and whatever else rich looks at."""
    environment = {"NO_COLOR": "0", "TERM": "dumb", "LINES": "25"}

    assert environment == usable({**environment, "COLUMNS": "0"})


def test_the_output_of_the_moment_is_written_to(capsys):
    """Not the one that was there when a module was imported."""
    make_console().print("[0] as it is", markup=False)

    assert "[0] as it is\n" == capsys.readouterr().out
