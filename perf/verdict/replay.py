"""Judge a table of past throughput forward in time by the floor rule, as pure functions.

Each value is held against the earlier dates of its own series, as if the rule had been in force. The rule
asks for 5 launches an occasion; old tables hold one number each, so that is waived here. What is printed
is therefore a look at the rule and at the history, not a verdict: a miss asks for a confirmation that
a table can't give.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perf.verdict.floors import Floor, Occasion, floor_from

__all__ = ["Judged", "Replay", "Row", "Series", "replay"]


@dataclass(frozen=True, order=True)
class Series:
    """What is compared over time: one benchmark on one system with so many GPUs."""

    benchmark: str
    system: str
    gpus: int


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    line
        Its number in the file, for messages.
    series
        What it belongs to.
    stack
        Framework and version; rows of one series are compared across stacks, that is the point.
    date
        ISO date; sorts as text.
    rate
        Samples per second, positive; None if it did not complete.
    outcome
        What stood in place of the rate if it did not complete, for example 'ERROR'.
    """

    line: int
    series: Series
    stack: str
    date: str
    rate: float | None
    outcome: str = ""


@dataclass(frozen=True)
class Judged:
    """One judgement: the median of a series' rows of one date and stack, against the floor of earlier dates.

    Attributes
    ----------
    rows
        The rows that were judged.
    rate
        Their median, samples per second.
    floor
        The floor of the earlier dates.
    again
        Whether the judgement before this one in the series missed a firm floor too.
    """

    rows: tuple[Row, ...]
    rate: float
    floor: Floor
    again: bool

    @property
    def series(self) -> Series:
        """The series that was judged."""
        return self.rows[0].series

    @property
    def missed(self) -> bool:
        """Whether the rate is below the floor."""
        return self.floor.missed_by(self.rate)

    @property
    def change(self) -> float:
        """Relative change against the reference's centre."""
        return self.rate / self.floor.centre - 1.0


@dataclass(frozen=True)
class Replay:
    """What the replay of a table gave, each in order of date and line.

    Attributes
    ----------
    judged
        Every judgement, missed or not.
    first
        Rows with nothing earlier to hold them against.
    incomplete
        Rows that did not complete; they are neither judged nor part of a reference.
    """

    judged: tuple[Judged, ...]
    first: tuple[Row, ...]
    incomplete: tuple[Row, ...]

    @property
    def misses(self) -> tuple[Judged, ...]:
        """The judgements that missed."""
        return tuple(one for one in self.judged if one.missed)


def replay(rows: Iterable[Row]) -> Replay:
    """Judge every row against the earlier dates of its series.

    What a date showed becomes part of the reference for later dates, with one exception: a miss against
    a firm floor (two or more occasions) is left out. Were it taken in, the floor would widen until the
    same loss passed the next time. Against a single occasion nobody knows which of the two is the
    unusual one, so both are kept.

    Parameters
    ----------
    rows
        In any order. Rows of one series, date and stack are launches of one occasion.
    """
    ordered = sorted(rows, key=lambda row: (row.date, row.line))
    complete = [row for row in ordered if row.rate is not None]
    judged: list[Judged] = []
    first: list[Row] = []
    for series in sorted({row.series for row in complete}):
        held, unheld = _replay_series([row for row in complete if row.series == series])
        judged += held
        first += unheld
    return Replay(
        judged=tuple(sorted(judged, key=lambda one: (one.rows[0].date, one.rows[0].line))),
        first=tuple(sorted(first, key=lambda row: (row.date, row.line))),
        incomplete=tuple(row for row in ordered if row.rate is None),
    )


def _replay_series(rows: Sequence[Row]) -> tuple[list[Judged], list[Row]]:
    """Replay the completed rows of one series, in order of date."""
    judged: list[Judged] = []
    first: list[Row] = []
    occasions: list[Occasion] = []
    missed_before = False
    for date in sorted({row.date for row in rows}):
        floor = floor_from(occasions, least_launches=1) if occasions else None
        kept: list[float] = []
        missed_now = False
        for stack in sorted({row.stack for row in rows if row.date == date}):
            group = tuple(row for row in rows if row.date == date and row.stack == stack)
            rates = [row.rate for row in group if row.rate is not None]
            if floor is None:
                first += group
                kept += rates
                continue
            one = Judged(group, statistics.median(rates), floor, again=missed_before)
            judged.append(one)
            if one.missed and not floor.provisional:
                missed_now = True
            else:
                kept += rates
        missed_before = missed_now
        if kept:
            occasions.append(Occasion(date=date, node="", rates=tuple(kept)))
    return judged, first
