from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.verdict.replay import Row, Series, replay

SERIES = Series("DDP", "puhti", 4)


def rows(*rates: float | None, series: Series = SERIES, first_line: int = 2) -> list[Row]:
    """Return one row a year with these rates; None did not complete."""
    return [
        Row(first_line + place, series, "torch", f"{2010 + place}-01-01", rate, "" if rate else "ERROR")
        for place, rate in enumerate(rates)
    ]


def test_the_first_date_is_judged_by_nothing():
    """A series' first date has no reference and is listed as such."""
    result = replay(rows(1000.0))
    assert () == result.judged
    assert [2] == [row.line for row in result.first]


@pytest.mark.parametrize(("second", "missed"), [(930.0, False), (920.0, True), (1500.0, False)])
def test_one_earlier_occasion_is_provisional(second, missed):
    """Against one occasion 7.6 % of loss (7.9 % in log units) are allowed, and the judgement is provisional."""
    (one,) = replay(rows(1000.0, second)).judged
    assert missed is one.missed
    assert one.floor.provisional
    assert pytest.approx(second / 1000.0 - 1.0) == one.change


def test_a_miss_of_a_firm_floor_is_not_taken_into_the_reference():
    """A loss that stays is missed each time, not absorbed by a floor that widens."""
    result = replay(rows(1000.0, 1001.0, 999.0, 900.0, 900.0, 900.0, 1000.0))
    assert ["2013-01-01", "2014-01-01", "2015-01-01"] == [one.rows[0].date for one in result.misses]
    assert [False, True, True] == [one.again for one in result.misses]
    assert [3, 3, 3] == [one.floor.occasions for one in result.misses]
    assert not result.judged[-1].missed


def test_a_provisional_miss_is_taken_in():
    """Of two occasions that disagree nobody knows which is unusual: both stay."""
    result = replay(rows(1000.0, 800.0, 810.0))
    assert 1 == len(result.misses)
    assert 2 == result.judged[-1].floor.occasions
    assert not result.judged[-1].missed


def test_what_did_not_complete_is_listed_and_nothing_else():
    """A row without a rate is neither judged, nor a reference, nor a first date."""
    result = replay(rows(None, 1000.0, None, 900.0))
    assert [2, 4] == [row.line for row in result.incomplete]
    assert [3] == [row.line for row in result.first]
    assert [5] == [one.rows[0].line for one in result.misses]


def test_series_do_not_mix():
    """Another benchmark, system or number of GPUs is another series."""
    table = rows(1000.0)
    for place, other in enumerate(
        (Series("DP", "puhti", 4), Series("DDP", "mahti", 4), Series("DDP", "puhti", 8))
    ):
        table += rows(None, 100.0, series=other, first_line=10 * place + 10)
    result = replay(table)
    assert () == result.judged
    assert 4 == len(result.first)


def test_rows_of_one_date_are_one_occasion():
    """Several rows of a date and stack are judged by their median, and count as one occasion; two stacks are two."""
    table = [
        Row(place, SERIES, "torch 1", "2020-01-01", rate) for place, rate in enumerate((990.0, 1000.0, 700.0))
    ]
    table += [
        Row(place + 10, SERIES, "torch 1", "2021-01-01", rate)
        for place, rate in enumerate((880.0, 900.0, 995.0))
    ]
    table += [
        Row(20, SERIES, "torch 2", "2021-01-01", 1000.0),
        Row(30, SERIES, "torch 2", "2022-01-01", 980.0),
    ]
    result = replay(table)
    assert [(10, 11, 12), (20,), (30,)] == [tuple(row.line for row in one.rows) for one in result.judged]
    assert [900.0, 1000.0, 980.0] == [one.rate for one in result.judged]
    assert [990.0, 990.0] == [pytest.approx(one.floor.centre) for one in result.judged[:2]]
    assert 2 == result.judged[2].floor.occasions


@settings(max_examples=40)
@given(st.lists(st.none() | st.floats(500.0, 1500.0), max_size=12), st.integers(0, 10**6))
def test_the_order_of_the_table_does_not_matter(rates, seed):
    """Rows are judged in order of date, wherever they stand, and every row is accounted for once."""
    table = rows(*rates)
    mixed = random.Random(seed).sample(table, len(table))
    assert replay(table) == replay(mixed)
    result = replay(table)
    assert len(table) == len(result.judged) + len(result.first) + len(result.incomplete)


@settings(max_examples=40)
@given(
    st.lists(st.floats(500.0, 1500.0), min_size=1, max_size=8), st.lists(st.floats(500.0, 1500.0), max_size=4)
)
def test_the_future_does_not_change_the_past(past, future):
    """Later dates never change an earlier judgement."""
    short, long = replay(rows(*past)).judged, replay(rows(*past, *future)).judged
    assert short == long[: len(short)]
