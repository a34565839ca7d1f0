from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perf.verdict.looks import (
    FAIL_LOOKS,
    FIRST_LOOK,
    LOOKS,
    grossly_different,
    hodges_lehmann,
    kth_largest,
    kth_smallest,
    null_counts,
    pairwise_differences,
    rank_for_level,
    rank_level,
)

BUDGET = 2.2e-4
values = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=8)


def sides_with(n: int, not_above: int) -> tuple[list[float], list[float]]:
    """Return two sides of n values of which exactly `not_above` differences worse - better are negative."""
    better = [float(place) for place in range(n)]
    worse = [n + place / 100.0 for place in range(n)]
    for place in range(n):
        drop = min(n, not_above)
        worse[place] = n - drop - 0.5 + place / 1000.0
        not_above -= drop
        if not not_above:
            break
    return worse, better


def scipy_level(n: int, rank: int) -> float:
    """Return P(at most rank - 1 of n x n differences are negative) from scipy's exact test."""
    worse, better = sides_with(n, rank - 1)
    assert rank - 1 == sum(difference < 0 for difference in pairwise_differences(worse, better))
    return float(stats.mannwhitneyu(worse, better, alternative="greater", method="exact").pvalue)


@pytest.mark.parametrize(
    ("launches", "rank", "level"),
    [(5, 3, 1.59e-2), (10, 5, 6.5e-5), (10, 23, 1.77e-2), (16, 35, 9.5e-5), (16, 67, 9.5e-3)],
)
def test_each_rank_has_the_level_of_scipys_exact_test(launches, rank, level):
    """Each bound of a look has exactly the level that scipy's Mann-Whitney test gives it."""
    assert pytest.approx(scipy_level(launches, rank), rel=1e-12) == rank_level(launches, launches, rank)
    assert pytest.approx(level, rel=6e-3) == rank_level(launches, launches, rank)


def test_false_fails_of_all_looks_keep_the_budget():
    """The fail levels of all looks add up to the budget of a judgement, 2.2e-4, and to 1 % over 45 judgements."""
    total = sum(
        2.0**-14 if look.gross else scipy_level(look.launches, look.fail_rank)
        for look in LOOKS
        if look.gross or look.fail_rank
    )
    assert pytest.approx(BUDGET, rel=0.01) == total
    assert 45 * total < 0.01


def test_wrong_passes_of_all_looks_stay_below_one_in_twenty():
    """A side that is worse by the margin passes in at most 5 % of judgements, whatever the noise."""
    assert 0.05 > sum(scipy_level(look.launches, look.pass_rank) for look in LOOKS if look.pass_rank)


def test_a_looser_rank_would_break_the_budget():
    """One rank more at 10 launches costs more than 1e-4, so the table can't be loosened unseen."""
    assert 1e-4 < rank_level(10, 10, 6)
    assert 1e-4 < rank_level(16, 16, 36)


def test_looks_come_in_order_and_only_later_ones_fail():
    """The looks take 5, 7, 10 and 16 launches; a rank can fail at 10 and 16 only."""
    assert [5, 7, 10, 16] == [look.launches for look in LOOKS]
    assert 5 == FIRST_LOOK
    assert (10, 16) == FAIL_LOOKS


def test_two_distant_values_are_the_worst_noise_of_the_gross_rule():
    """With two equally likely values a gross difference at 7 has level 2**-14, and no probability gives more."""
    highest = max((p**7 * (1 - p) ** 7 for p in (place / 1000 for place in range(1001))), default=0.0)
    assert pytest.approx(2.0**-14) == highest
    halves = list(itertools.product((0.0, 1.0), repeat=6))
    # 3 against 3 by enumeration: 1 of 64 orders is grossly different, 2**-6.
    assert 1 == sum(grossly_different(half[:3], half[3:]) for half in halves)


@pytest.mark.parametrize(
    ("worse", "better", "zero", "expected"),
    [
        ([3.0, 3.5], [1.0, 1.5], 0.0, True),
        ([3.0, 4.6], [1.0, 1.5], 0.0, False),  # its own range, 1.6, is wider than the gap, 1.5
        ([3.0, 3.5], [0.0, 1.6], 0.0, False),
        ([3.0, 3.5], [1.0, 1.5], 1.2, False),  # above a limit the gap is only 0.3
        ([1.0, 1.0], [1.0, 1.0], 0.0, False),
        ([1.0, 1.5], [3.0, 3.5], 0.0, False),
    ],
)
def test_gross_difference_needs_a_gap_wider_than_both_ranges(worse, better, zero, expected):
    """A gross difference is a positive gap that is wider than either side's own range."""
    assert expected is grossly_different(worse, better, zero)


@given(st.integers(1, 9), st.integers(1, 9))
def test_null_counts_are_all_orders(m, n):
    """The counts of U are symmetric and add up to all C(m+n, m) orders."""
    counts = null_counts(m, n)
    assert math.comb(m + n, m) == sum(counts)
    assert counts == counts[::-1]
    assert m * n + 1 == len(counts)


def test_null_counts_equal_enumeration():
    """The counts equal those from listing every order of 3 against 4."""
    counts = [0] * 13
    for chosen in itertools.combinations(range(7), 3):
        rest = [place for place in range(7) if place not in chosen]
        counts[sum(x > y for x in chosen for y in rest)] += 1
    assert counts == null_counts(3, 4)


@pytest.mark.parametrize(("n", "expected"), [(5, 0), (7, 0), (8, 1), (10, 5), (16, 35)])
def test_rank_for_a_level_is_the_largest_that_keeps_it(n, expected):
    """Below 8 launches no rank has level 1e-4; at 10 and 16 it is the rank of the fail look."""
    assert expected == rank_for_level(n, n, 1e-4)
    assert 1e-4 < rank_level(n, n, expected + 1)


def test_rank_for_level_one_is_every_difference():
    """A level of one allows every rank."""
    assert 9 == rank_for_level(3, 3, 1.0)


@given(values, values)
def test_differences_and_their_ranks_agree_with_their_definition(worse, better):
    """d[k] counts from the smallest, d[-k] from the largest, and the estimate lies between the ends."""
    differences = pairwise_differences(worse, better)
    assert len(worse) * len(better) == len(differences)
    assert min(worse) - max(better) == kth_smallest(differences, 1)
    assert max(worse) - min(better) == kth_largest(differences, 1)
    assert kth_smallest(differences, 1) <= hodges_lehmann(differences) <= kth_largest(differences, 1)
    assert kth_smallest(differences, len(differences)) == kth_largest(differences, 1)


@pytest.mark.parametrize("rank", [0, -1, 5])
def test_a_rank_that_does_not_exist_is_refused(rank):
    """A rank beyond the differences is an error that names both numbers."""
    with pytest.raises(ValueError, match=f"rank {rank} does not exist among 4"):
        kth_smallest([1.0, 2.0, 3.0, 4.0], rank)
    with pytest.raises(ValueError, match="does not exist"):
        kth_largest([1.0, 2.0, 3.0, 4.0], rank)
