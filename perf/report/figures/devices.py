"""Power, clock, utilization and temperature of the GPUs over the time of a run. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.figures.thinning import share_out, thin
from perf.report.samples import Look, Sampled
from perf.report.text import clean, number

__all__ = ["devices"]

_PICTURES = (
    ("power_watts", "Power of the GPUs", "power (W)", "W"),
    ("sm_clock_mhz", "Clock of the GPUs", "clock of the multiprocessors (MHz)", "MHz"),
    ("utilization_percent", "Utilization of the GPUs", "utilization (%)", "%"),
    ("temperature_celsius", "Temperature of the GPUs", "temperature (°C)", "°C"),
)

_POINTS = 8_000
"""Points of one picture: more than a screen has columns for, on four cards."""

_COLUMNS = ("variant", "launch", "GPU", "looks", "median", "lowest", "highest")
_NOTE = "Over all looks of a launch, start-up and end included: what counts for a verdict is in the launch's record."


def devices(sampled: Sequence[Sampled]) -> list[Figure]:
    """One picture a gauge: a line for each card over the time of the run, with gaps between launches."""
    start = min((look.time for one in sampled for look in one.looks), default=0.0)
    cards: dict[str, list[tuple[Sampled, list[Look]]]] = {}
    for one in sampled:
        mine: dict[str, list[Look]] = {}
        for look in one.looks:
            mine.setdefault(look.card, []).append(look)
        for card, looks in mine.items():
            cards.setdefault(card, []).append((one, looks))
    points = share_out(_POINTS, sum(map(len, cards.values())), 8, 600)
    cut = (
        " A launch's file was longer than is read; its end is missing." if any(o.cut for o in sampled) else ""
    )
    figures = []
    for gauge, title, axis, unit in _PICTURES:
        series, rows = [], list[tuple[str, ...]]()
        longest_run = 1
        for place, card in enumerate(sorted(cards)):
            x, y = list[float | None](), list[float | None]()
            for one, looks in cards[card]:
                known = [
                    (look.time, value) for look in looks if (value := look.gauges.get(gauge)) is not None
                ]
                if not known:
                    continue
                thinned = thin([value for _, value in known], points)
                longest_run = max(longest_run, thinned.run)
                # A missing value between two launches, so that no line joins them.
                x += [*(round(known[step][0] - start, 1) for step in thinned.places), None]
                y += [*(round(value, 1) for value in thinned.values), None]
                rows.append(_row(one, card, [value for _, value in known], unit))
            if x:
                dash = ("solid", "dash", "dot")[place // 8 % 3]
                series.append(Series(f"GPU {clean(card)}", x, y, "line", f"side-{place}", line=dash, size=0))  # type: ignore[arg-type]
        if series:
            how = (
                "every look is drawn"
                if longest_run == 1
                else f"of every {longest_run} looks of the longest launch the lowest and the highest are drawn"
            )
            figures.append(
                Figure(
                    f"device-{gauge}",
                    title,
                    f"A line a card, looked at once a second from outside the ranks; {how}. Gaps are between "
                    f"launches.{cut}",
                    Axis("time since the first look (s)"),
                    Axis(axis, from_zero=True),
                    series,
                    Table(_COLUMNS, rows, frozenset({3, 4, 5, 6}), _NOTE),
                    search=" ".join(dict.fromkeys(one.variant for one in sampled)),
                )
            )
    return figures


def _row(one: Sampled, card: str, values: Sequence[float], unit: str) -> tuple[str, ...]:
    """Return median and range of one card in one launch."""
    return (
        clean(one.variant),
        clean(one.launch),
        clean(card),
        str(len(values)),
        f"{number(statistics.median(values))} {unit}",
        f"{number(min(values))} {unit}",
        f"{number(max(values))} {unit}",
    )
