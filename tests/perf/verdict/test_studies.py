"""Predictions of time and memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.verdict.studies import Line, larger_network_in_words, line_through


@given(st.integers(1, 10**9), st.integers(1, 10**8), st.sets(st.integers(1, 4096), min_size=2, max_size=6))
def test_a_line_is_found_again(fixed, each, batches):
    """Peaks that lie on a line give that line."""
    found = line_through(sorted(batches), [fixed + each * batch for batch in sorted(batches)])

    assert found.each == pytest.approx(each, rel=1e-6)
    assert found.fixed == pytest.approx(fixed, rel=1e-3, abs=each * 1e-3)


def test_the_largest_batch_fills_the_memory():
    """What is left behind the fixed part, in whole samples; none where the network itself does not fit."""
    assert 8 == Line(20.0, 10.0).largest(109.0)
    assert 0 == Line(20.0, 10.0).largest(5.0)
    with pytest.raises(ValueError, match="does not grow"):
        Line(20.0, 0.0).largest(109.0)


def test_one_batch_makes_no_line():
    """Two different ones are needed."""
    with pytest.raises(ValueError, match="two different"):
        line_through([8, 8], [1.0, 1.0])


@pytest.mark.parametrize(
    ("time", "words"),
    [(1.1, "something else bounds both"), (2.8, "grows as the operations"), (4.0, "less efficiently")],
)
def test_the_expectation_is_the_operations(time, words):
    """ResNet-152 over ResNet-50: 2.46 times the parameters, 2.83 times the operations."""
    assert words in larger_network_in_words(time, 2.46, 2.83)
