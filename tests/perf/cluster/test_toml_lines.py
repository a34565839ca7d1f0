"""Where keys stand in a TOML text."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.cluster.toml_lines import key_lines, line_of

TEXT = '''# a comment with [brackets] and key = 1
top = 1

[scheduler] # more
kind = "slurm"
options = [
    "a = 1",  # no = key
    "[x]",
]
text = """
kind = "not a key"
[stacks.fake]
"""
[stacks."a b".c]
'quoted key' = 'it''s'
[[list]]
x.y = {z = 1}
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("top",), 2),
        (("scheduler",), 4),
        (("scheduler", "kind"), 5),
        (("scheduler", "options"), 6),
        (("scheduler", "text"), 10),
        (("stacks", "a b", "c"), 14),
        (("list", "x", "y"), 17),
    ],
)
def test_a_key_is_found_on_its_line(key, line):
    """Comments, strings and arrays that look like keys and tables are passed over."""
    text = TEXT.replace("'it''s'", "'its'")
    tomllib.loads(text)

    assert line == key_lines(text)[key]


def test_what_has_no_line_is_answered_with_what_it_stands_in():
    """A key inside an inline table has its table's line, and an unknown one the first line."""
    lines = key_lines("a = 1\nb = {c = 2}\n")

    assert 2 == line_of(lines, ("b", "c"))
    assert 1 == line_of(lines, ("nowhere", "at", "all"))


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

    found = key_lines(text)

    assert [lines.index("[table]") + 2 + i for i in range(len(table))] == [
        found["table", key] for key in table
    ]


@given(st.text(max_size=60))
def test_text_that_is_no_toml_ends_too(text):
    """The scanner comes to an end whatever it is given."""
    assert isinstance(key_lines(text), dict)
