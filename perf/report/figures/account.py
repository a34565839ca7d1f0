"""The picture of where the wall time of a run went. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perf.report.account import Held, Spent
from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.text import clean, duration, share

__all__ = ["account_picture"]


def account_picture(rows: Sequence[Spent], gpus: Held) -> Figure | None:
    """Stack start-up, window and rest of each group; None where there was no launch."""
    if not rows:
        return None
    names = tuple(clean(row.group) for row in rows)
    parts = (
        ("start-up", [row.start for row in rows]),
        ("measured window", [row.window for row in rows]),
        ("warm-up, epochs, the rest", [row.rest for row in rows]),
    )
    series = [
        Series(
            name,
            values,
            list(names),
            kind="bars",
            role=f"side-{place}",
            hover=[f"{group}\n{name}: {duration(value)}" for group, value in zip(names, values, strict=True)],
            along_x=True,
        )
        for place, (name, values) in enumerate(parts)
    ]
    whole = sum(row.total for row in rows)
    of_gpus = (
        f" GPUs were held for {duration(gpus.seconds)}, {share(gpus.share)} of it timed."
        if gpus.share
        else ""
    )
    table = Table(
        ("group", "launches", "wall time", "share", *(name for name, _ in parts)),
        [
            (
                clean(row.group),
                str(row.launches),
                duration(row.total),
                share(row.total / whole if whole else None),
                duration(row.start),
                duration(row.window),
                duration(row.rest),
            )
            for row in rows
        ],
        frozenset(range(1, 7)),
        f"Sums over launches, {duration(whole)} in all; launches that failed, and the time between launches, "
        f"are not in it.{of_gpus}",
    )
    return Figure(
        "account",
        "Where the time of the run went",
        "Wall time of the launches of each group, summed.",
        Axis("wall time (s)", from_zero=True),
        Axis("", categories=names),
        series,
        table,
        stacked=True,
        search=" ".join(names),
    )
