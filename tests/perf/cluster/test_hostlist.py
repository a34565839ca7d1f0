"""Slurm's short lists of nodes are read as the names that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.cluster.hostlist import NoHostlist, expanded


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("n1", ["n1"]),
        ("n[1-2]", ["n1", "n2"]),
        ("n[1-2,7],login1", ["n1", "n2", "n7", "login1"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[1-2]n[3-4]", ["r1n3", "r1n4", "r2n3", "r2n4"]),
        ("g[1]-ib,x", ["g1-ib", "x"]),
    ],
)
def test_lists_as_slurm_writes_them(text, names):
    """One name, ranges, several lists, zeros in front, two brackets, and what follows a bracket."""
    assert names == expanded(text)


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=30))
def test_numbers_come_back_in_their_order(numbers):
    """Whatever stands in a bracket, each number is one name."""
    assert [f"n{n}" for n in numbers] == expanded(f"n[{','.join(map(str, numbers))}]")


@pytest.mark.parametrize(
    "text", ["n[1-", "n]", "n[a-b]", "n[3-1]", "n[1--2]", "n[]", "n[0-999999999]", "n[1-99999]x[1-9]"]
)
def test_what_is_no_list_is_an_error(text):
    """Open brackets, letters, empty ranges, and more names than there are nodes anywhere."""
    with pytest.raises(NoHostlist, match="expected a list|is empty or names more"):
        expanded(text)


@given(st.text(alphabet="n1-2[],0 x", max_size=20))
def test_any_text_is_names_or_an_error(text):
    """Nothing else is raised, and names hold no bracket."""
    try:
        names = expanded(text)
    except NoHostlist:
        return
    assert all("[" not in name and "]" not in name for name in names)
