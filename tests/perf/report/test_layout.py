from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from perf.report.layout import Cell, Column, arrange, paragraph
from perf.report.text import MISSING

COLUMNS = (
    Column("variant", line=0),
    Column("note", line=1),
    Column("step ms", right=True, label="step {} ms"),
    Column("plan"),
)
ID = "mnist_cnn-ddp-2cpu-gloo-fp32-native"


def drawn(width, rows, columns=COLUMNS):
    """Return rows as they are drawn in a pipe of some width."""
    console = Console(file=io.StringIO(), width=width, _environ={})
    for block in arrange(console, columns, [[Cell(text) for text in row] for row in rows]):
        console.print(block)
    return console.file.getvalue()


def test_what_fits_is_a_table():
    """One line a row under one line of headings, numbers flush right."""
    lines = [
        line.rstrip()
        for line in drawn(80, [(ID, "in a", "75.1", "window"), (ID, "", "1234.5", "io")]).splitlines()
    ]
    assert [
        "variant                              note  step ms  plan",
        f"{ID}  in a     75.1  window",
        f"{ID}         1234.5  io",
    ] == lines


def test_names_get_lines_of_their_own_where_a_table_is_too_wide():
    """Long names stand whole on their own lines, values in columns below them."""
    assert [
        "variant",
        "    note",
        "    step ms  plan",
        ID,
        "    in a",
        "       75.1  window",
        ID,
        "     1234.5  io",
    ] == drawn(40, [(ID, "in a", "75.1", "window"), (ID, "", "1234.5", "io")]).splitlines()


def test_values_are_labelled_where_even_columns_are_too_wide():
    """With too little room for columns each value says what it is, and nothing stands in for what is missing."""
    rows = [(ID, "", "75.1", "window with a long name"), (ID, "", MISSING, "io")]
    assert [ID, "    step 75.1 ms, window with a", "    long name", ID, "    io"] == drawn(
        35, rows
    ).splitlines()


def test_a_column_without_a_value_is_left_out():
    """Nobody needs a heading above nothing."""
    assert "note" not in drawn(80, [(ID, "", "75.1", "window"), (ID, MISSING, "76.0", "io")])


def test_markup_is_text():
    """Brackets in a name are neither a style nor an error."""
    assert "[red]x[/red] [/nonsense]" in drawn(80, [("[red]x[/red] [/nonsense]", "", "1", "")])


WORDS = st.text(st.sampled_from("abcdefgh-_:[]/."), min_size=1, max_size=70)


@settings(max_examples=60)
@given(st.integers(20, 220), st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=4))
def test_no_width_loses_a_character(width, rows):
    """Whatever the width, every value is there in full and in order, and no line is wider than the console."""
    text = drawn(width, rows)
    assert all(len(line) <= width for line in text.splitlines())
    # Folded lines may be indented; without white space the pieces of a value join again.
    joined = "".join(text.split())
    assert all(value in joined for row in rows for value in row)


@settings(max_examples=60)
@given(st.integers(20, 200), st.integers(0, 6), st.lists(WORDS, max_size=20))
def test_a_paragraph_keeps_its_words(width, indent, words):
    """Wrapped text holds every word, is indented throughout, and stays within the width."""
    console = Console(file=io.StringIO(), width=width, _environ={})
    lines = paragraph(console, " ".join(words), indent=indent).plain.split("\n")
    assert all(line.startswith(" " * indent) for line in lines)
    assert all(len(line) <= max(width, 20 + indent) for line in lines)
    assert "".join(words) == "".join("".join(lines).split())


def test_a_paragraph_does_not_break_a_name_at_its_hyphens():
    """An id that fits on a line stays whole, to be copied and searched for."""
    console = Console(file=io.StringIO(), width=50, _environ={})
    assert ID in paragraph(console, f"the launches of the variant {ID} differ", indent=2).plain.split()


def test_a_paragraph_keeps_its_own_line_feeds():
    """A reason may quote a log of several lines."""
    console = Console(file=io.StringIO(), width=40, _environ={})
    assert "  a\n  \n  b" == paragraph(console, "a\n\nb", indent=2).plain
