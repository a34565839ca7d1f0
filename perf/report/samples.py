"""Reading what was sampled beside launches: ``launches/<launch>/telemetry.jsonl``, a look a line, 1 Hz."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.contract import LaunchRecord

__all__ = ["GAUGES", "Look", "Sampled", "read_samples"]

SAMPLES = "telemetry.jsonl"
GAUGES = ("power_watts", "sm_clock_mhz", "utilization_percent", "temperature_celsius")

_MOST_BYTES = 16 << 20
"""A look of eight cards is 3 kB, so an hour is 11 MB. Of a larger file the rest is left out, and that is said."""


@dataclass(frozen=True)
class Look:
    """One card at one moment: Unix time, the card as the sampler names it, and each gauge; null where unknown."""

    time: float
    card: str
    gauges: dict[str, float | None]


@dataclass(frozen=True)
class Sampled:
    """The looks beside one launch, in the order of time."""

    launch: str
    variant: str
    looks: list[Look]
    cut: bool = False


def read_samples(records: Sequence[LaunchRecord], folder: Path) -> list[Sampled]:
    """Read the looks of all launches of a run that have some.

    A line that can't be read (a sampler that was killed) is left out.

    Parameters
    ----------
    records
        The run's launches.
    folder
        The run's folder.
    """
    inside = (folder / "launches").resolve()
    found = []
    for record in records:
        path = inside / record.launch / SAMPLES
        # A launch's name comes from a file, and must not lead out of the run's folder.
        if not path.resolve().is_relative_to(inside) or not path.is_file():
            continue
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        looks = [look for line in data[:_MOST_BYTES].split(b"\n") for look in _looks(line)]
        if looks:
            cut = len(data) > _MOST_BYTES
            found.append(
                Sampled(record.launch, record.variant, sorted(looks, key=lambda look: look.time), cut)
            )
    return found


def _looks(line: bytes) -> list[Look]:
    """Return what one line says of each card; none for the header, for a CPU, and for what is no such line."""
    try:
        values = json.loads(line)
        moment, cards = float(values["time"]), values["gpus"]
        return [
            Look(
                moment,
                f"{card['index']}: {card['uuid']}",
                {name: _number(card.get(name)) for name in GAUGES},
            )
            for card in cards
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _number(value: Any) -> float | None:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None
