"""Throughput, efficiency and loader share over time: one picture a quantity, system and topic. Pure."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Sequence

from perf.report.figures.model import Axis, Figure, Line, Section, Series, Table, Value
from perf.report.history.nominations import Nominated, day_of
from perf.report.history.observations import QUANTITIES, Observation, Quantity
from perf.report.history.observations import Series as Found
from perf.report.text import clean, number

__all__ = ["MOST_POINTS", "history_sections"]

MOST_POINTS = 500
"""Points of a line: more than a screen has columns for. A longer series is drawn as medians of as many neighbours."""

MOST_STACKS = 12
"""Changes of stack that are marked with words; beyond them words lie on words, and the pointer tells."""

NEWEST = 100
"""Rows of the table behind a picture."""

_SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "star")


def history_sections(series: Sequence[Found], nominated: Sequence[Nominated]) -> list[Section]:
    """Return a section for each quantity that has a series."""
    marked: dict[int, list[Nominated]] = {}
    for hit in nominated:
        marked.setdefault(id(hit.series), []).append(hit)
    sections = []
    for quantity in QUANTITIES:
        pictures: dict[tuple[str, str], list[Found]] = {}
        for one in series:
            if one.quantity is quantity:
                pictures.setdefault((one.system, one.topic), []).append(one)
        figures = [
            _figure(quantity, place, key, mine, marked) for place, (key, mine) in enumerate(pictures.items())
        ]
        intro = f"{quantity.title} ({quantity.unit}), a line a variant. Crosses are nominated change points."
        sections.append(
            Section(
                quantity.key,
                quantity.title,
                intro,
                figures,
                [] if figures else ["nothing that it is made of was measured in one run"],
            )
        )
    return sections


def _figure(
    quantity: Quantity,
    place: int,
    key: tuple[str, str],
    series: Sequence[Found],
    marked: dict[int, list[Nominated]],
) -> Figure:
    system, topic = map(clean, key)
    lines = [_line(one, at) for at, one in enumerate(series)]
    crosses = [cross for one in series for cross in marked.get(id(one), ())]
    if crosses:
        lines.append(_crosses(quantity, crosses))
    return Figure(
        f"{quantity.key}-{place}",
        f"{quantity.title}{f' of {topic}' if topic else ''} on {system}",
        "A dashed line is a change of stack. Nothing is judged here.",
        Axis("date (UTC)"),
        Axis(f"{quantity.title.lower()} ({quantity.unit})"),
        lines,
        _table(quantity, series),
        _stacks(series),
        search=" ".join((system, topic, *(clean(one.variant) for one in series))),
    )


def _line(series: Found, at: int) -> Series:
    points = _thinned(series)
    return Series(
        clean(series.variant),
        [_moment(when) for when, *_ in points],
        [value for _, value, _ in points],
        kind="line",
        role=f"side-{at}",
        symbol=_SYMBOLS[at % len(_SYMBOLS)],
        size=6 if len(points) <= 200 else 3,
        hover=[
            f"{series.variant}\n{_moment(when)[:10]}: {number(value)} {series.quantity.unit}\n{words}"
            for when, value, words in points
        ],
    )


def _thinned(series: Found) -> list[tuple[float, float, str]]:
    """Return time, value and words of each point; medians of neighbours where there are too many."""
    values, observations = series.values, series.observations
    if len(values) <= MOST_POINTS:
        return [
            (one.when, value, f"{one.stack}, run {one.run}")
            for one, value in zip(observations, values, strict=True)
        ]
    width = -(-len(values) // MOST_POINTS)
    return [
        (
            observations[begin].when,
            statistics.median(values[begin : begin + width]),
            f"{observations[begin].stack}, median of {len(values[begin : begin + width])} runs",
        )
        for begin in range(0, len(values), width)
    ]


def _crosses(quantity: Quantity, crosses: Sequence[Nominated]) -> Series:
    values: list[Value] = [one.series.values[one.nomination.place] for one in crosses]
    return Series(
        "nominated",
        [_moment(one.when) for one in crosses],
        values,
        role="fail",
        symbol="x-open",
        size=13,
        hover=[
            f"{one.series.variant}\n{day_of(one.when)}: {quantity.told(one.nomination.change)} ({one.nomination.rule})"
            for one in crosses
        ],
    )


def _stacks(series: Sequence[Found]) -> list[Line]:
    """Mark when each stack was seen first, but for the very first one."""
    first: dict[str, Observation] = {}
    for one in sorted((o for s in series for o in s.observations), key=lambda o: o.when):
        first.setdefault(one.stack, one)
    changes = list(first.values())[1:]
    return [
        # plotly takes a number on an axis of dates as milliseconds of Unix time.
        Line("x", one.when * 1e3, clean(one.stack) if len(changes) <= MOST_STACKS else "", role="muted")
        for one in changes
    ]


def _table(quantity: Quantity, series: Sequence[Found]) -> Table:
    rows = sorted(
        (
            (one.when, s.variant, one.stack, value, one.launches, one.run)
            for s in series
            for one, value in zip(s.observations[-NEWEST:], s.values[-NEWEST:], strict=True)
        ),
        key=lambda row: (-row[0], row[1]),
    )[:NEWEST]
    return Table(
        ("date", "variant", "stack", f"{quantity.title.lower()} ({quantity.unit})", "launches", "run"),
        [
            (day_of(when), clean(variant), clean(stack), number(value), str(launches), clean(run))
            for when, variant, stack, value, launches, run in rows
        ],
        frozenset((3, 4)),
        f"The newest {NEWEST} at most; all are in the runs themselves.",
    )


def _moment(when: float) -> str:
    return datetime.datetime.fromtimestamp(when, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
