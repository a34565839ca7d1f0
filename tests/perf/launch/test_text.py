from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from perf.launch.text import UNSAFE, harmless, last_lines, read_tail, shorten


@given(st.text(alphabet=st.characters()))
def test_no_unsafe_character_is_left(text):
    """Whatever comes in, no control, format, surrogate or separator character comes out."""
    assert not [c for c in harmless(text) if unicodedata.category(c) in UNSAFE]


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_is_left_alone(text):
    """Letters, digits, signs and blanks of any script pass as they are."""
    assert text == harmless(text)


def test_each_kind_of_unsafe_character_is_shown_as_its_escape():
    """Escape sequences, direction overrides and characters beyond the BMP are written out."""
    assert r"a b\x1b[2J\u202e\U000e0001\x9b\ud800" == harmless("a\tb\x1b[2J\u202e\U000e0001\x9b\ud800")


@given(st.text(alphabet=st.sampled_from("ab \n\r\t")), st.integers(0, 20))
def test_last_lines_are_the_last_that_say_something(text, count):
    """At most `count` lines are returned, none blank, and the last one is the last of the text."""
    lines = last_lines(text, count)
    said = [line.strip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
    assert min(count, len(said)) == len(lines)
    assert [line.replace("\t", " ") for line in said[len(said) - len(lines) :]] == [
        line.strip() for line in lines
    ]


def test_a_progress_bar_counts_line_by_line():
    """A carriage return ends a line, so the bar's last state is what is seen."""
    assert ["100 %", "done"] == last_lines("1 %\r50 %\r100 %\r\ndone\n", 2)


def test_a_long_line_is_cut_and_says_so():
    """A line beyond the width tells how much is missing."""
    assert "xxxxx… (7 more characters)" == shorten("x" * 12, 5)


def test_only_the_end_of_a_long_file_is_read(tmp_path):
    """The tail has at most the asked bytes, also where it starts inside a character."""
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000 + "é".encode() + b"end")
    assert "\\xa9end" == read_tail(path, 4)


def test_a_missing_file_has_an_empty_tail(tmp_path):
    """A log that was never written is not an error."""
    assert "" == read_tail(tmp_path / "none")
