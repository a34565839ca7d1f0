"""Where a step's time goes: its phases, for launches that were timed so. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from perf.contract import LaunchRecord
from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.text import clean, number, share

__all__ = ["phases"]


def phases(records: Sequence[LaunchRecord]) -> Figure | None:
    """Stack the median seconds of each phase of a step, for the slowest rank of each launch that has them."""
    timed = [(record, found) for record in records if record.valid and (found := _slowest(record))]
    if not timed:
        return None
    names = tuple(clean(f"{record.variant}, {record.launch}") for record, _ in timed)
    phase_names = list(dict.fromkeys(name for _, (_, medians) in timed for name in medians))
    series = [
        Series(
            clean(phase),
            [medians.get(phase, 0.0) * 1e3 for _, (_, medians) in timed],
            list(names),
            kind="bars",
            role=f"side-{place}",
            hover=[
                f"{name}\nrank {rank}, {clean(phase)}: {number(medians.get(phase, 0.0) * 1e3)} ms"
                for name, (_, (rank, medians)) in zip(names, timed, strict=True)
            ],
            along_x=True,
        )
        for place, phase in enumerate(phase_names)
    ]
    rows = []
    for record, (rank, medians) in timed:
        whole = sum(medians.values())
        rows.append(
            (
                clean(record.variant),
                clean(record.launch),
                str(rank),
                *(
                    f"{number(medians[phase] * 1e3)} ms, {share(medians[phase] / whole if whole else None)}"
                    if phase in medians
                    else "–"
                    for phase in phase_names
                ),
            )
        )
    columns = ("variant", "launch", "rank", *map(clean, phase_names))
    return Figure(
        "phases",
        "Phases of a step",
        "Medians over the steps of one launch each, on its slowest rank. Every phase ends with a synchronize, so the "
        "sum is longer than an undisturbed step; such launches are never judged.",
        Axis("time a step (ms)", from_zero=True),
        Axis("", categories=names),
        series,
        Table(columns, rows, frozenset(range(2, len(columns))), "One launch a row, so there is no interval."),
        stacked=True,
        search=" ".join(record.variant for record, _ in timed),
    )


def _slowest(record: LaunchRecord) -> tuple[int, dict[str, float]] | None:
    """Return the rank with the longest sum of median phases, and those medians; None without phases."""
    ranks = [
        (rank, {name: statistics.median(seconds) for name, seconds in found.items() if seconds})
        for rank, found in enumerate(record.phase_seconds or [])
    ]
    known = [(rank, medians) for rank, medians in ranks if medians]
    return max(known, key=lambda pair: sum(pair[1].values()), default=None)
