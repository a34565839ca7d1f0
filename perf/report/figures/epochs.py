"""Epochs: how long each takes, the first beside the later ones, and what was learned. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from perf.contract import LaunchRecord
from perf.report.figures.bars import launches_text, search_words
from perf.report.figures.launches import INTERVAL_NOTE, Estimate, Side, estimate
from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.text import clean, number

__all__ = ["epochs"]


def epochs(groups: Mapping[str, Sequence[Side]]) -> list[Figure]:
    """Seconds of each whole epoch, a line for each side whose launches train several: the first is the slow one."""
    figures = []
    for group, found in groups.items():
        mine = [side for side in found if side.plan == "epochs"]
        shown = [(side, values) for side in mine if (values := _seconds(side))]
        if not shown:
            continue
        series = [
            Series(
                clean(side.label),
                [float(index + 1) for index in values],
                [value.median for value in values.values()],
                kind="line",
                role=f"side-{place}",
                low=[value.low for value in values.values()],
                high=[value.high for value in values.values()],
                hover=[
                    f"{clean(side.variant)}\nepoch {index + 1}: {value.text('s')}, {launches_text(value.launches)}"
                    for index, value in values.items()
                ],
                line=("solid", "dash", "dot")[place % 3],
            )
            for place, (side, values) in enumerate(shown)
        ]
        figures.append(
            Figure(
                f"epochs-{group}",
                f"Epochs, {clean(group)}",
                "Seconds of each whole epoch on its slowest rank, validation apart. What the first one takes longer is "
                "start-up: workers, caches, the choice of kernels.",
                Axis("epoch", ticks=tuple(sorted({float(i + 1) for _, values in shown for i in values}))),
                Axis("seconds an epoch (s)", from_zero=True),
                series,
                _table(shown),
                search=search_words([side for side, _ in shown]),
            )
        )
    return figures


def _seconds(side: Side) -> dict[int, Estimate]:
    """Return the seconds of each epoch that was whole on every rank, over the launches."""
    found: dict[int, list[float]] = {}
    for launch in side.launches:
        for index, seconds in enumerate(launch.epoch_seconds):
            ranks = [epoch for rank in launch.epochs for epoch in rank if epoch.index == index]
            if ranks and all(epoch.complete for epoch in ranks):
                found.setdefault(index, []).append(seconds)
    return {index: value for index, values in found.items() if (value := estimate(values)) is not None}


def _table(shown: Sequence[tuple[Side, Mapping[int, Estimate]]]) -> Table:
    rows = []
    for side, values in shown:
        for index, value in values.items():
            first_batch = _of_epoch(side.launches, index, "first_batch_seconds")
            loss = _of_epoch(side.launches, index, "validation_loss")
            accuracy = _of_epoch(side.launches, index, "validation_accuracy")
            rows.append(
                (
                    clean(side.variant),
                    *((clean(side.run),) if side.run else ()),
                    str(index + 1),
                    value.text("s"),
                    str(value.launches),
                    f"{number(first_batch)} s",
                    number(loss),
                    number(accuracy),
                )
            )
    run = ("run",) if any(side.run for side, _ in shown) else ()
    columns = (
        "variant",
        *run,
        "epoch",
        "seconds",
        "launches",
        "first batch",
        "validation loss",
        "validation accuracy",
    )
    return Table(columns, rows, frozenset(range(1 + len(run), len(columns))), INTERVAL_NOTE)


def _of_epoch(launches: Sequence[LaunchRecord], index: int, name: str) -> float | None:
    """Return the median over launches of rank 0's value of one field of one epoch."""
    values = [
        value
        for launch in launches
        for epoch in (launch.epochs[0] if launch.epochs else [])
        if epoch.index == index and (value := getattr(epoch, name)) is not None
    ]
    return statistics.median(values) if values else None
