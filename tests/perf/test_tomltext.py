from __future__ import annotations

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from perf.tomltext import TomlError, line_of, parse, places

TEXT = """\
# a comment, with [brackets] and a = sign
schema = 1

[system]
gpu = "x = [y]"   # another

[reference."a.b-c".throughput]
unit = "samples/s"
launches = [
    1.0,
    # a comment in a list
    2.0,
]
text = '''
[not.a.table]
nor = "a key"
'''
point = { x = 1, y = 2 }
a."b=c" = 1

[[reference."a.b-c".throughput.occasion]]
date = 2026-11-28
[[reference."a.b-c".throughput.occasion]]
date = 2026-11-29
"""

THROUGHPUT = ("reference", "a.b-c", "throughput")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("schema",), 2),
        (("system",), 4),
        (("system", "gpu"), 5),
        (THROUGHPUT, 7),
        ((*THROUGHPUT, "launches"), 9),
        ((*THROUGHPUT, "text"), 14),
        ((*THROUGHPUT, "point"), 18),
        ((*THROUGHPUT, "a", "b=c"), 19),
        ((*THROUGHPUT, "occasion", 0, "date"), 22),
        ((*THROUGHPUT, "occasion", 1), 23),
        ((*THROUGHPUT, "occasion", 1, "date"), 24),
    ],
)
def test_every_key_and_table_has_its_line(path, line):
    """Lines are found through comments, lists over several lines, texts that look like TOML, and arrays of tables."""
    assert line == places(TEXT)[path]


def test_what_looks_like_toml_inside_a_text_is_no_place():
    """A table's header inside a text of several lines is text."""
    assert not [path for path in places(TEXT) if "not" in path or "nor" in path]


NAMES = st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable())


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers() | NAMES, max_size=4), max_size=4))
def test_every_key_of_any_file_has_a_place(data):
    """Whatever the names of tables and keys are, each is found, in a line that holds its value."""
    text = tomlkit.dumps(data)
    lines = text.split("\n")
    found = places(text)
    for table, values in tomllib.loads(text).items():
        assert lines[found[table,] - 1].startswith("[")
        for key in values:
            assert "=" in lines[found[table, key] - 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\nb = 2\na = 3\n", "f.toml:3: a: written twice"),
        ("[x]\n[y]\n[x]\n", r"f.toml:3: \[x\]: written twice"),
        ("a = 1\nb =\n", "f.toml:2: Invalid value: b ="),
        ("\ufeffa = 1\n", "f.toml:1: begins with a byte order mark; save it as UTF-8 without one"),
        (
            "a = [\n1,\n]\nb = 1\nc = " + "9" * 5000 + "\nd = [\n2,\n]",
            "f.toml:5: a whole number of more than 64 bits",
        ),
        ("a = [\n1,\n]\nb = 1\n\nc = " + "[" * 3000 + "\nd = 1", "f.toml:6: nested more than 100 deep"),
        ("a = 1\nb = " + "{c=" * 3000, "f.toml:2: nested more than 100 deep"),
        ("a = 1\n" + "b." * 3000 + "c = 1\n", r"f.toml:2: b\.b\.b\.b: nested more than 100 deep"),
        ("a = 1\nb = " + "[" * 101 + "]" * 101, "f.toml:2: b.*: nested more than 100 deep"),
        (
            "[t]\na = [\n1,\n0x" + "f" * 5000 + "]\n",
            r"f.toml:2: t\.a\[2\]: a whole number of more than 64 bits",
        ),
        (f"a = {2**63}", "f.toml:1: a: a whole number of more than 64 bits"),
    ],
)
def test_broken_toml_names_its_line(text, words):
    """A key that is written twice and a value that is missing are errors with the file's name and the line."""
    with pytest.raises(TomlError, match=words):
        parse(text, "f.toml")


def test_the_longest_numbers_and_the_deepest_lists_are_read():
    """64 bits with a sign, and a hundred deep less the key."""
    text = f"a = {2**63 - 1}\nb = {-(2**63)}\nc = {'[' * 99}{']' * 99}\n"

    data, lines = parse(text, "f.toml")

    assert (2**63 - 1, -(2**63)) == (data["a"], data["b"])
    assert {("a",): 1, ("b",): 2, ("c",): 3} == lines


def test_what_has_no_line_is_answered_with_what_it_stands_in():
    """A key inside an inline table has its table's line, and an unknown one the first line."""
    lines = places("a = 1\nb = {c = 2}\n")

    assert 2 == line_of(lines, ("b", "c"))
    assert 1 == line_of(lines, ("nowhere", "at", "all"))


def test_lines_may_end_as_on_windows():
    """A carriage return before the line feed belongs to neither key nor value."""
    assert {("a",): 1, ("t",): 2, ("t", "b"): 3} == places("a = 1\r\n[t]\r\nb = 2\r\n")


values = st.recursive(
    st.text(st.characters(blacklist_categories=("Cs",)), max_size=12),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


def _toml(value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return '"' + "".join(c if c.isalnum() or c in " #[]{}='" else f"\\U{ord(c):08x}" for c in value) + '"'


@given(st.dictionaries(st.from_regex(r"\A[a-z]{1,6}\Z"), values, min_size=1, max_size=6), st.integers(0, 3))
def test_every_key_of_a_table_is_found_whatever_its_values_hold(table, blank):
    """Keys stand where they were written, however strange the strings before them are."""
    lines = (
        ["", "# x = [" * (blank > 1)] * blank + ["[table]"] + [f"{k} = {_toml(v)}" for k, v in table.items()]
    )
    text = "\n".join(lines)
    assert {"table": table} == tomllib.loads(text)
    found = places(text)

    assert [lines.index("[table]") + 2 + i for i in range(len(table))] == [
        found["table", key] for key in table
    ]
