"""Whole numbers in what other programs print."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perf.whole import whole


@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_a_number_is_read(number):
    """What is written in digits is what comes back, with leading zeros and blanks too."""
    assert number == whole(str(number)) == whole(f"  {number}\n")
    assert number == whole(f"{number:018}")


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "+1", "1.0", "1 2", "0x1", "1_000", "¹", "٣", "9" * 19, "9" * 5000]
)
def test_anything_else_is_none(text):
    """Signs, other scripts' digits, superscripts and numbers beyond 64 bits are no counts."""
    assert whole(text) is None


@given(st.text())
@example("²")
def test_any_text_is_survived(text):
    """It raises for no text."""
    assert whole(text) is None or whole(text) >= 0
