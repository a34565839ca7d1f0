"""Change points of all series, gathered by day and system and read together: absolute numbers and ratios. Pure."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perf.report.history.observations import QUANTITIES, Series
from perf.verdict.changepoints import (
    Nomination,
    excursions,
    incidents,
    level_changes,
    pooled_noise,
)

__all__ = ["Day", "Nominated", "day_of", "days_of", "nominate"]


DAY = 86400.0
"""Seconds of a day of UTC."""


@dataclass(frozen=True)
class Nominated:
    """A place in a series that was nominated."""

    series: Series
    nomination: Nomination

    @property
    def when(self) -> float:
        """Unix time of the result."""
        return self.series.observations[self.nomination.place].when

    @property
    def stacks(self) -> tuple[str, str]:
        """The stack before and at that place."""
        here = self.nomination.place
        return self.series.observations[here - 1].stack, self.series.observations[here].stack


@dataclass(frozen=True)
class Day:
    """What was nominated on one day on one system, and what it reads like."""

    day: str
    system: str
    nominated: list[Nominated]
    sentence: str


def day_of(when: float) -> str:
    """Return the UTC date of a Unix time."""
    return datetime.datetime.fromtimestamp(when, datetime.UTC).date().isoformat()


def nominate(series: Sequence[Series]) -> list[Nominated]:
    """Return every place that may be a change, of all series."""
    found = [
        Nominated(one, nomination) for one in series for nomination in level_changes(one.scaled) if one.scaled
    ]
    known = {(id(one.series), one.nomination.place) for one in found}
    for quantity in QUANTITIES:
        mine = [one for one in series if one.quantity is quantity]
        noise = pooled_noise(
            [
                [(o.stack, value) for o, value in zip(one.observations, one.scaled, strict=True)]
                for one in mine
            ]
        )
        by_day: dict[tuple[str, int], list[tuple[Series, int, float]]] = {}
        for one in mine:
            for place, (observation, change) in enumerate(
                zip(one.observations, excursions(one.scaled), strict=True)
            ):
                by_day.setdefault((one.system, int(observation.when // DAY)), []).append((one, place, change))
        for together in by_day.values():
            for hit in incidents([change for *_, change in together], noise):
                one, place, change = together[hit]
                if (id(one), place) not in known:
                    found.append(Nominated(one, Nomination(place, change, "incident")))
    return found


def days_of(nominated: Sequence[Nominated], series: Sequence[Series]) -> list[Day]:
    """Gather what was nominated by system and day, in the order of time, each with its reading."""
    found: dict[tuple[str, str], list[Nominated]] = {}
    for one in sorted(nominated, key=lambda one: one.when):
        found.setdefault((day_of(one.when), one.series.system), []).append(one)
    counts = Counter(
        (int(o.when // DAY), one.system, one.quantity.key) for one in series for o in one.observations
    )
    return [
        Day(day, system, mine, _reading(mine, _measured(counts, int(mine[0].when // DAY), system)))
        for (day, system), mine in found.items()
    ]


def _measured(counts: Counter[tuple[int, str, str]], day: int, system: str) -> dict[str, int]:
    """Return how many variants had each quantity on a day."""
    return {quantity.key: counts[day, system, quantity.key] for quantity in QUANTITIES}


def _reading(nominated: Sequence[Nominated], measured: dict[str, int]) -> str:
    """Say what moved, how much, and what that points at: a ratio tells where, an absolute number that."""
    parts, keys = [], set()
    for quantity in QUANTITIES:
        mine = [one for one in nominated if one.series.quantity is quantity]
        if not mine:
            continue
        keys.add(quantity.key)
        changes = sorted((one.nomination.change for one in mine), key=abs)
        told = quantity.told(changes[0])
        if len(changes) > 1:
            told += f" to {quantity.told(changes[-1])}"
        variants = "variant" if measured[quantity.key] == 1 else "variants"
        parts.append(f"{quantity.title.lower()} of {len(mine)} of {measured[quantity.key]} {variants} {told}")
    text = "; ".join(parts)
    stacks = {one.stacks for one in nominated if one.stacks[0] != one.stacks[1]}
    change = " and ".join(sorted(f"{old} to {new}" for old, new in stacks))
    return f"{text}. {_points_at(nominated, keys)}" + (f" The stack changed: {change}." if change else "")


def _points_at(nominated: Sequence[Nominated], keys: set[str]) -> str:
    if "throughput" not in keys:
        return "A ratio moved and no absolute number did: look at what it is held against first."
    if "loader_share" in keys:
        return "The loader's share moved with it: the loader or the file system comes first."
    if "efficiency" in keys:
        return "Efficiency moved with it: what lies between the devices comes first."
    slowed = {one.series.observations[one.nomination.place].devices for one in nominated}
    if slowed and min(slowed) > 1:
        return "No variant of one device moved: what lies between the devices comes first."
    return "No ratio moved: the devices, the host or the stack come first, not what lies between them."
