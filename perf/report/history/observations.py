"""What months of results are made of: one observation a variant and run, and series of them. Pure."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["QUANTITIES", "Observation", "Quantity", "Series", "series_of", "with_ratios"]


@dataclass(frozen=True)
class Observation:
    """One variant in one run.

    Attributes
    ----------
    when
        Unix time, in seconds.
    family
        What variants have in common that differ in the number of devices alone; '' for none.
    devices
        On how many it trained.
    fed
        The variant that trains the same on data that lie on the device; '' where there is none, or it is that itself.
    throughput
        Samples/s, a median over the launches.
    efficiency
        Throughput a device over that on the fewest devices beside it; None where it is that itself.
    loader_share
        1 - throughput / throughput of `fed`.
    """

    when: float
    system: str
    topic: str
    variant: str
    stack: str
    throughput: float
    run: str
    launches: int = 1
    family: str = ""
    devices: int = 1
    fed: str = ""
    efficiency: float | None = None
    loader_share: float | None = None


@dataclass(frozen=True)
class Quantity:
    """One of the numbers that are followed. `relative`: changes are told in per cent, else in points."""

    key: str
    title: str
    unit: str
    relative: bool

    def of(self, observation: Observation) -> float | None:
        """Return the number, None where an observation has none."""
        value: float | None = getattr(observation, self.key)
        return value

    def scaled(self, value: float) -> float:
        """Return the number on the scale on which differences count."""
        return math.log(value) if self.relative else value

    def told(self, change: float) -> str:
        """Write a difference on that scale: ``-5.4 %`` or ``+3.1 points``."""
        return f"{100 * math.expm1(change):+.1f} %" if self.relative else f"{100 * change:+.1f} points"


QUANTITIES = (
    Quantity("throughput", "Throughput", "samples/s", relative=True),
    Quantity("efficiency", "Scaling efficiency", "of that on the fewest devices", relative=True),
    Quantity("loader_share", "Loader share", "of a step", relative=False),
)


@dataclass(frozen=True)
class Series:
    """One quantity of one variant on one system, in the order of time."""

    quantity: Quantity
    system: str
    topic: str
    variant: str
    observations: list[Observation]

    @functools.cached_property
    def values(self) -> list[float]:
        """The numbers, as they are."""
        return [value for one in self.observations if (value := self.quantity.of(one)) is not None]

    @functools.cached_property
    def scaled(self) -> list[float]:
        """The numbers on the scale on which differences count."""
        return [self.quantity.scaled(value) for value in self.values]


def with_ratios(observations: Sequence[Observation]) -> list[Observation]:
    """Return one run's observations with efficiency and loader share, where what they are held against is there."""
    by_variant = {one.variant: one for one in observations}
    fewest: dict[str, Observation] = {}
    for one in observations:
        if one.family and (one.family not in fewest or one.devices < fewest[one.family].devices):
            fewest[one.family] = one
    found = []
    for one in observations:
        base = fewest.get(one.family)
        efficiency = None
        if base is not None and base.devices < one.devices:
            efficiency = (one.throughput / one.devices) / (base.throughput / base.devices)
        fed = by_variant.get(one.fed)
        share = None if fed is None else 1.0 - one.throughput / fed.throughput
        found.append(_replaced(one, efficiency, share))
    return found


def _replaced(one: Observation, efficiency: float | None, share: float | None) -> Observation:
    if efficiency is None and share is None:
        return one
    # dataclasses.replace takes three times as long, and there are tens of thousands.
    return Observation(**{**vars(one), "efficiency": efficiency, "loader_share": share})


def series_of(observations: Iterable[Observation]) -> list[Series]:
    """Sort observations into series, by system, topic and variant; each in the order of time."""
    ordered = sorted(observations, key=lambda one: one.when)
    members: dict[tuple[str, str, str], list[Observation]] = {}
    for one in ordered:
        members.setdefault((one.system, one.topic, one.variant), []).append(one)
    return [
        Series(quantity, *key, mine)
        for key in sorted(members, key=lambda key: tuple(map(_natural, key)))
        for quantity in QUANTITIES
        if (mine := [one for one in members[key] if quantity.of(one) is not None])
    ]


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort 8 before 16."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text) if part]
