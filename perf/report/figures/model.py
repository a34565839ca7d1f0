"""Pictures as data: series, lines, bands and the table behind each. Pure; `perf.report.plotly` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Axis", "Band", "Figure", "Kind", "Line", "Section", "Series", "Table"]

Kind = Literal["points", "line", "bars"]

Value = float | str | None


@dataclass(frozen=True)
class Axis:
    """One axis: its title with the unit, whether it is logarithmic, whether it starts at zero, its categories.

    `ticks` are the only places that are marked: for counts, of which there is no half.
    """

    title: str
    log: bool = False
    from_zero: bool = False
    categories: tuple[str, ...] = ()
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """One entry of the legend.

    Attributes
    ----------
    role
        Which colour: ``side-0`` and so on for sides, ``ideal`` and ``muted``, or a verdict's word.
    low, high
        Ends of each value's interval; empty where there are none. They lie along x if `along_x`, else along y; so do
        bars.
    hover
        What a pointer over each value says.
    line
        ``solid``, ``dash`` or ``dot``, so that series can be told apart without colour.
    """

    name: str
    x: Sequence[Value]
    y: Sequence[Value]
    kind: Kind = "points"
    role: str = "side-0"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    hover: Sequence[str] = ()
    symbol: str = "circle"
    line: Literal["solid", "dash", "dot"] = "solid"
    size: int = 7
    along_x: bool = False
    in_legend: bool = True


@dataclass(frozen=True)
class Line:
    """A limit or a reference across the picture, or across one category of it. `at` is on the axis `axis`."""

    axis: Literal["x", "y"]
    at: float
    text: str
    category: int | None = None
    role: str = "limit"


@dataclass(frozen=True)
class Band:
    """A shaded range of one category on the x axis: where a reference says that values lie."""

    low: float
    high: float
    category: int
    text: str = ""


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture, already written. `numeric` are the places of columns of numbers."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numeric: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """One picture. `search` holds the words by which the page's filter finds it."""

    key: str
    title: str
    caption: str
    x: Axis
    y: Axis
    series: list[Series]
    table: Table
    lines: list[Line] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    stacked: bool = False
    search: str = ""


@dataclass(frozen=True)
class Section:
    """One question of the report: its pictures, or the reasons why there is none."""

    key: str
    title: str
    intro: str
    figures: list[Figure] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
