"""Sides of a group held against each other: one bar a side, its range, and a dot for each launch. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perf.contract import LaunchRecord
from perf.report.figures.launches import INTERVAL_NOTE, Side
from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.text import clean, memory, number, share

__all__ = ["RATE", "STEP", "Quantity", "bars", "launches_text", "search_words", "side_table"]


@dataclass(frozen=True)
class Quantity:
    """What a bar is long for: its name, unit, the factor from the record's unit, and how to read it."""

    name: str
    unit: str
    scale: float
    value: Callable[[LaunchRecord], float | None]


STEP = Quantity(
    "step time, median of the slowest rank", "ms", 1e3, lambda launch: launch.median_step_seconds or None
)
RATE = Quantity(
    "throughput, all ranks together", "samples/s", 1.0, lambda launch: launch.samples_per_second or None
)


def bars(key: str, title: str, caption: str, found: Sequence[Side], quantity: Quantity) -> Figure | None:
    """Return a bar for each side that has the quantity; None where none has."""
    shown = [(side, value) for side in found if (value := side.estimate(quantity.value)) is not None]
    if not shown:
        return None
    unit, scale = quantity.unit, quantity.scale
    labels = [clean(side.label) for side, _ in shown]
    dots = [
        (label, place, taken * scale)
        for (side, _), label in zip(shown, labels, strict=True)
        for place, launch in enumerate(side.launches, start=1)
        if (taken := quantity.value(launch)) is not None
    ]
    medians = Series(
        "median, range of the launches",
        [value.median * scale for _, value in shown],
        labels,
        kind="bars",
        low=[value.low * scale for _, value in shown],
        high=[value.high * scale for _, value in shown],
        hover=[
            f"{clean(side.variant)}\n{value.text(unit, scale)}, {launches_text(value.launches)}"
            for side, value in shown
        ],
        along_x=True,
    )
    single = Series(
        "one launch",
        [value for _, _, value in dots],
        [label for label, _, _ in dots],
        role="dot",
        size=5,
        hover=[f"launch {place} of {label}\n{number(value)} {unit}" for label, place, value in dots],
    )
    return Figure(
        key,
        title,
        caption,
        Axis(f"{quantity.name} ({unit})", from_zero=True),
        Axis("", categories=tuple(labels)),
        [medians, single],
        side_table([side for side, _ in shown]),
        search=search_words([side for side, _ in shown]),
    )


def side_table(found: Sequence[Side], extra: Sequence[tuple[str, Sequence[str]]] = ()) -> Table:
    """Return all that is known of some sides' speed, with columns of one's own behind it."""
    rows = []
    for place, side in enumerate(found):
        peaks = [
            size for launch in side.launches for rank in launch.peak_memory_bytes for size in rank.values()
        ]
        step, rate, wait = side.step, side.rate, side.wait_share
        rows.append(
            (
                clean(side.variant + ("" if side.plan == "window" else f"+{side.plan}")),
                *((clean(side.run),) if side.run else ()),
                str(len(side.launches)),
                step.text("ms", 1e3) if step else "–",
                rate.text("samples/s") if rate else "–",
                share(wait.median) if wait else "–",
                memory(max(peaks, default=None)),
                *(values[place] for _, values in extra),
            )
        )
    runs = any(side.run for side in found)
    columns = (
        "variant",
        *(("run",) if runs else ()),
        "launches",
        "step",
        "throughput",
        "wait for data",
        "peak memory",
        *(name for name, _ in extra),
    )
    return Table(columns, rows, frozenset(range(2 if runs else 1, len(columns))), INTERVAL_NOTE)


def launches_text(count: int) -> str:
    """Write a number of launches."""
    return "1 launch" if count == 1 else f"{count} launches"


def search_words(found: Sequence[Side]) -> str:
    """Return the words by which the page's filter finds a picture of some sides."""
    return " ".join(dict.fromkeys(word for side in found for word in (side.group, side.variant)))
