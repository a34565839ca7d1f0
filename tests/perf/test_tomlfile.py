from __future__ import annotations

import pytest

from perf.tomlfile import TomlError, load, nearest


@pytest.mark.parametrize(
    ("text", "take", "words"),
    [
        ("a = 1", lambda s: s.text("a"), "f.toml:1: a: expected a text in quotation marks, got 1"),
        ("a = ' '", lambda s: s.text("a"), "expected a text"),
        ("a = true", lambda s: s.whole("a"), "expected a whole number of at least 0, got True"),
        ("\na = -1", lambda s: s.whole("a"), "f.toml:2: a: expected a whole number"),
        ("a = nan", lambda s: s.number("a"), "expected a number, got nan"),
        ("a = 0", lambda s: s.number("a", above=0.0), "a number above 0, got 0"),
        ("a = -0.1", lambda s: s.number("a", least=0.0), "a number of at least 0, got -0.1"),
        ("a = 'x'", lambda s: s.flag("a"), "true or false"),
        ("a = '2026-11-28'", lambda s: s.date("a"), "without quotation marks"),
        ("a = 2026-11-28T10:00:00", lambda s: s.date("a"), "a date such as"),
        ("a = [1]", lambda s: s.texts("a"), "a list of texts"),
        ("a = [1, -2]", lambda s: s.numbers("a", above=0.0, least=1), "at least 1 numbers above 0"),
        ("a = [1]", lambda s: s.numbers("a", above=0.0, least=2), "at least 2 numbers"),
        ("a = 1", lambda s: s.table("a"), "expected a table"),
        ("a = 1", lambda s: s.tables("a"), r"each headed \[\[a\]\]"),
        ("a = { b = [1] }", lambda s: s.plain("a"), "a table of texts, numbers"),
        ("", lambda s: s.text("a"), "the file: lacks the key 'a': a text"),
    ],
)
def test_a_wrong_value_names_line_key_and_what_was_expected(text, take, words):
    """Each kind of value is checked, and true is no number."""
    with pytest.raises(TomlError, match=words):
        take(load(text, "f.toml"))


def test_an_unknown_key_gets_the_nearest_known_one():
    """What nobody asked for is an error at its line, with a hint."""
    section = load("unit = 's'\ntolerence = 1\n", "f.toml")
    section.text("unit")
    section.number("tolerance", None)
    with pytest.raises(TomlError, match=r"f\.toml:2: tolerence: unknown key; did you mean 'tolerance'\?"):
        section.finish()


def test_an_error_inside_an_array_of_tables_counts_from_1():
    """The second table of an array is called the second."""
    second = load("[[a]]\nb = 1\n[[a]]\nb = 'x'\n", "f.toml").tables("a")[1]
    with pytest.raises(TomlError, match=r"f\.toml:4: a\[2\]\.b: expected"):
        second.whole("b")


def test_a_hint_lists_what_is_known_where_nothing_is_near():
    """A word like no other gets the list, unless it is long; without anything known, that is said."""
    assert "known are one, two" == nearest("zzz", ["two", "one"])
    assert "it is not known" == nearest("zzz", [])
    assert "it is not known" == nearest("zzz", [str(i) for i in range(30)])
