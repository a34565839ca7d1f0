"""What takes the time in traced launches: a bar a kernel (on a CPU an operator). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perf.contract import LaunchRecord
from perf.report.figures.model import Axis, Figure, Series, Table
from perf.report.text import clean, number, share

__all__ = ["kernels"]


def kernels(records: Sequence[LaunchRecord]) -> list[Figure]:
    """Return a picture for the first rank of each traced launch."""
    figures = []
    for record in records:
        facts = record.trace_facts[0] if record.trace_facts else {}
        rows = facts.get("top") or []
        if not rows:
            continue
        # A kernel's name may be as long as a page; a category is its name, so each keeps its number.
        names = [f"{place}. {clean(str(row['name']))[:60]}" for place, row in enumerate(rows, start=1)]
        busy = facts.get("device_busy_share")
        caption = f"{facts['steps']} steps, {number(facts['seconds'] * 1e3)} ms, rank 0." + (
            "" if busy is None else f" The device was busy for {share(busy)} of it."
        )
        bars = Series(
            "part of all kernels' time",
            [row["share"] for row in rows],
            names,
            kind="bars",
            hover=[f"{clean(str(row['name']))}\n{share(row['share'])}, {row['calls']} calls" for row in rows],
            along_x=True,
        )
        table = Table(
            ("name", "calls", "time (ms)", "share"),
            [
                (
                    clean(str(row["name"])),
                    str(row["calls"]),
                    number(row["seconds"] * 1e3),
                    share(row["share"]),
                )
                for row in rows
            ],
            frozenset({1, 2, 3}),
            "Time of a kernel or operator itself, without those that it calls. Files: "
            + ", ".join(clean(name) for name in record.traces),
        )
        figures.append(
            Figure(
                f"kernels-{record.run}-{record.launch}",
                f"What takes the time, {clean(record.variant)}",
                caption,
                Axis("share of the time", from_zero=True),
                Axis("", categories=tuple(names)),
                [bars],
                table,
                search=clean(record.variant),
            )
        )
    return figures
