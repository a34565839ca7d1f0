"""Which phase of a step moved."""

from __future__ import annotations

import pytest

from perf.verdict.phases import phase_changes, phases_in_words, slowest_rank


def launch(**milliseconds: float) -> list[dict[str, list[float]]]:
    """Return the phases of a launch of one rank, three steps alike."""
    return [{name: [value / 1e3] * 3 for name, value in milliseconds.items()}]


def test_the_slowest_rank_speaks_for_a_launch():
    """A rank that waits for another one is not where the time goes."""
    ranks = [{"forward": [0.001, 0.002, 0.003]}, {"forward": [0.004], "backward": []}]
    assert {"forward": 0.004} == slowest_rank(ranks)
    assert {} == slowest_rank([])


def test_the_phase_that_moved_comes_first_and_is_named():
    """Backward took 6 ms more; forward differs by less than its own launches do."""
    old = [launch(forward=5.0, backward=12.0), launch(forward=5.3, backward=12.2)]
    new = [launch(forward=5.2, backward=18.0), launch(forward=5.1, backward=18.4)]
    changes = phase_changes(old, new)
    assert ["backward", "forward"] == [change.phase for change in changes]
    assert [True, False] == [change.clear for change in changes]
    assert 0.0061 == pytest.approx(changes[0].seconds)
    words = phases_in_words(changes)
    assert "The phase that moved: backward +6.1 ms (12.1 to 18.2 ms)" in words
    assert "forward" not in words


def test_nothing_is_named_where_launches_overlap():
    """Noise is no answer to where the time went."""
    old, new = [launch(forward=5.0), launch(forward=7.0)], [launch(forward=6.0), launch(forward=6.5)]
    assert phases_in_words(phase_changes(old, new)).startswith(
        "No phase moved by more than the launches differ"
    )


def test_a_side_without_phases_gives_no_answer():
    """Absence is not a change."""
    assert [] == phase_changes([], [launch(forward=1.0)])
    assert "" == phases_in_words([])


def test_a_phase_that_one_side_lacks_took_no_time_there():
    """A stack may have a phase that the other one does not have."""
    (copy, *_) = phase_changes([launch(forward=1.0)], [launch(forward=1.0, copy=2.0)])
    assert ("copy", 0.0, 0.002) == (copy.phase, copy.old, copy.new)
