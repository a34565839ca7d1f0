"""Ratios of two sides, and judgements beside their limits: forest plots. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perf.report.figures.launches import Side
from perf.report.figures.model import Axis, Figure, Line, Series, Table
from perf.report.summary import VerdictRow
from perf.report.text import clean, number
from perf.verdict.looks import hodges_lehmann, kth_largest, kth_smallest, pairwise_differences, rank_for_level
from perf.verdict.pace import step_times

__all__ = ["LEVEL", "SYMBOLS", "VERDICTS", "Ratio", "distinct", "forest", "limits_forest", "ratio"]

LEVEL = 0.05
"""One-sided level of each end of an interval that was not judged: the level at which the rules let something pass."""

VERDICTS = ("fail", "invalid", "inconclusive", "unreferenced", "pass")


@dataclass(frozen=True)
class Ratio:
    """One step time over another: Hodges-Lehmann estimate; bounds where there are enough launches for them."""

    estimate: float
    low: float | None
    high: float | None
    launches: tuple[int, int]

    @property
    def text(self) -> str:
        """Write ``1.23 [1.10–1.40]``."""
        if self.low is None or self.high is None:
            return number(self.estimate)
        return f"{number(self.estimate)} [{number(self.low)}–{number(self.high)}]"


def ratio(new: Side, base: Side) -> Ratio | None:
    """Return the step time of `new` over that of `base`, with bounds of `LEVEL` each; None without steps."""
    logs = [
        [math.log(step) for step in side if step > 0.0] for side in step_times(new.launches, base.launches)
    ]
    if not all(logs):
        return None
    differences = pairwise_differences(*logs)
    k = rank_for_level(len(logs[0]), len(logs[1]), LEVEL)
    ends = (kth_smallest(differences, k), kth_largest(differences, k)) if k else (None, None)
    low, high = (None if end is None else math.exp(end) for end in ends)
    return Ratio(math.exp(hodges_lehmann(differences)), low, high, (len(logs[0]), len(logs[1])))


def forest(
    key: str, title: str, caption: str, rows: Sequence[tuple[str, str, Ratio]], *, search: str = ""
) -> Figure | None:
    """Draw ratios of step times, each a name, what it is held against, and the ratio; None without rows."""
    if not rows:
        return None
    names = tuple(clean(name) for name, _, _ in rows)
    series = Series(
        "step time ÷ step time of the other side",
        [found.estimate for *_, found in rows],
        list(names),
        low=[found.low for *_, found in rows],
        high=[found.high for *_, found in rows],
        hover=[f"{clean(name)}\n÷ {clean(base)}\n{found.text}" for name, base, found in rows],
        symbol="square",
        size=9,
        along_x=True,
    )
    table = Table(
        ("variant", "against", "ratio of step times [interval]", "launches a side"),
        [
            (clean(name), clean(base), found.text, " and ".join(map(str, found.launches)))
            for name, base, found in rows
        ],
        frozenset({2, 3}),
        "Hodges-Lehmann estimate; each end of the interval is an exact rank bound of level 5 % at most. "
        "Without an interval there are too few launches for one.",
    )
    return Figure(
        key,
        title,
        caption,
        Axis("ratio of step times; left of 1 is faster", log=True),
        Axis("", categories=names),
        [series],
        table,
        lines=[Line("x", 1.0, "equal", role="ideal")],
        search=search or " ".join(names),
    )


def limits_forest(rows: Sequence[VerdictRow]) -> Figure | None:
    """Draw every judgement that has a limit as its distance from that limit: right of 1 is beyond it."""
    judged = [row for row in rows if row.limit and row.estimate and row.estimate / row.limit > 0.0]
    if not judged:
        return None
    names = distinct([clean(f"{row.metric} {row.variant}") for row in judged])
    series = []
    for word in VERDICTS:
        mine = [(row, name) for row, name in zip(judged, names, strict=True) if row.verdict == word]
        if mine:
            parts = [_distance(row) for row, _ in mine]
            series.append(
                Series(
                    word,
                    [part[0] for part in parts],
                    [name for _, name in mine],
                    role=word,
                    low=[part[1] for part in parts],
                    high=[part[2] for part in parts],
                    hover=[
                        f"{clean(row.test)}\n{clean(row.subject)}\n{row.estimate_text}, limit {row.limit_text}\n"
                        f"{row.launches} launches a side: {word}"
                        for row, _ in mine
                    ],
                    symbol=SYMBOLS[word],
                    size=9,
                    along_x=True,
                )
            )
    table = Table(
        ("metric", "subject", "estimate [bounds]", "limit", "launches a side", "verdict"),
        [
            (
                clean(row.metric),
                clean(row.subject),
                row.estimate_text,
                row.limit_text,
                str(row.launches),
                row.verdict,
            )
            for row in judged
        ],
        frozenset({2, 3, 4}),
        "The bounds are those that the rule used; where the limit is a floor, the distance is limit ÷ estimate.",
    )
    return Figure(
        "limits",
        "Every judgement beside its limit",
        "Each point is an estimate divided by its limit, with the bounds that the rule used. Left of the line the "
        "limit is kept.",
        Axis("estimate ÷ limit (for a floor: limit ÷ estimate)", log=True),
        Axis("", categories=tuple(names)),
        series,
        table,
        lines=[Line("x", 1.0, "limit")],
        search=" ".join(names),
    )


SYMBOLS = {
    "pass": "circle",
    "fail": "x",
    "inconclusive": "diamond-open",
    "invalid": "triangle-up",
    "unreferenced": "circle-open",
}
"""A shape for each verdict: they can be told apart without colour."""


def _distance(row: VerdictRow) -> tuple[float, float | None, float | None]:
    """Return estimate, lower and upper bound in limits; turned over for what must not be lower."""
    limit = row.limit or math.nan
    parts = [
        None if value is None or value <= 0.0 else (limit / value if is_floor(row) else value / limit)
        for value in (row.estimate, row.low, row.high)
    ]
    low, high = (parts[2], parts[1]) if is_floor(row) else (parts[1], parts[2])
    return parts[0] or math.nan, low, high


def is_floor(row: VerdictRow) -> bool:
    """Say whether a row's limit is a least value: rates and efficiencies have to be high, all else low."""
    return row.unit.endswith("/s") or "efficiency" in row.metric


def distinct(names: Sequence[str]) -> list[str]:
    """Number names that occur twice, since a category of an axis is its name."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
