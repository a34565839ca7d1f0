"""What the machine can do, and what each variant makes of it: rows of the report. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.portable import card_of, medians
from perf.report.text import number
from perf.verdict.portable import known_in_words, nearest_in_words
from perf.verdict.portable_table import PortableTable

__all__ = ["FractionRow", "RateRow", "fraction_rows", "prefixed", "rate_rows", "scale"]

_SCALED = ("FLOP/s", "B/s")

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class RateRow:
    """One component rate.

    Attributes
    ----------
    value
        Median over the launches, in `unit`; None where it could not be had.
    spread
        Median over the launches of the standard deviation of the logarithms of a launch's repetitions.
    repetitions
        Of all launches.
    remark
        What was done, or why there is no value.
    """

    variant: str
    rate: str
    value: float | None
    unit: str
    spread: float | None
    launches: int
    repetitions: int
    remark: str


@dataclass(frozen=True)
class FractionRow:
    """What a variant makes of the machine's rates.

    Attributes
    ----------
    fractions
        By bound.
    nearest
        Which bound is nearest, in words.
    known
        What it makes of the bound that is nearest on known systems, in words; '' where none is known.
    """

    group: str
    variant: str
    fractions: dict[str, float]
    nearest: str
    known: str = ""


def prefixed(value: float | None, unit: str) -> str:
    """Write a rate with a prefix of its unit: 2.45e11 FLOP/s is '245 GFLOP/s'. A frequency keeps its digits."""
    if value is None:
        return number(value)
    factor, written = scale(value, unit)
    return f"{number(value / factor, 3)} {written}"


def scale(largest: float, unit: str) -> tuple[float, str]:
    """Return what numbers up to `largest` are divided by and the unit that they then have; rates alone are scaled."""
    if unit in _SCALED:
        for factor, prefix in _PREFIXES:
            if largest >= factor:
                return factor, prefix + unit
    return 1.0, unit


def rate_rows(records: Sequence[LaunchRecord]) -> list[RateRow]:
    """Return a row for each rate of each variant that measured the machine, in the order of measurement."""
    found: dict[tuple[str, str], list[LaunchRecord]] = {}
    for record in records:
        for name in record.rates if record.valid else ():
            side = f"@{record.side}" if record.side else ""
            found.setdefault((record.variant + side, name), []).append(record)
    rows = []
    for (variant, name), launches in found.items():
        rates = [launch.rates[name] for launch in launches]
        values = [rate.value for rate in rates if rate.value is not None]
        spreads = [rate.spread for rate in rates if rate.spread is not None]
        first = rates[0]
        rows.append(
            RateRow(
                variant=variant,
                rate=name,
                value=statistics.median(values) if values else None,
                unit=first.unit,
                spread=statistics.median(spreads) if spreads else None,
                launches=len(launches),
                repetitions=sum(len(rate.repetitions) for rate in rates),
                remark=first.reason or str(first.about.get("page_cache") or ""),
            )
        )
    return rows


def fraction_rows(records: Sequence[LaunchRecord], table: PortableTable | None = None) -> list[FractionRow]:
    """Return a row for each variant in each group whose machine's card was measured in the same run.

    Parameters
    ----------
    table
        Known systems, to stand beside.
    """
    members: dict[tuple[str, str], list[LaunchRecord]] = {}
    for record in records:
        if not record.profiled:
            members.setdefault((record.group, record.variant), []).append(record)
    cards = {device: card_of(records, device) for device in {record.device for record in records}}
    rows = []
    for (group, variant), launches in members.items():
        found = medians(launches, cards[launches[0].device])
        if found:
            plan = "" if launches[0].plan == "window" else f"+{launches[0].plan}"
            known = known_in_words(table.known(variant + plan)) if table else ""
            rows.append(FractionRow(group, variant, found, nearest_in_words(found), known))
    return rows
