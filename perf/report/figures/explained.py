"""Why a comparison moved, as sentences and tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perf.records import ExplanationRecord
from perf.report.differences import ABSENT
from perf.report.figures.model import Table
from perf.report.text import clean, number

__all__ = ["Explained", "explained"]

_NUMBERS = frozenset((1, 2, 3, 4, 5))


@dataclass(frozen=True)
class Explained:
    """One comparison that moved: sentences, and the tables that they rest on, each with its title."""

    title: str
    sentences: list[str]
    tables: list[tuple[str, Table]]


def explained(records: Sequence[ExplanationRecord]) -> list[Explained]:
    """Put what was found out about each comparison that moved into tables; the empty ones are left out."""
    return [
        Explained(
            clean(f"{record.metric} of {record.variant}"),
            [clean(sentence) for sentence in record.sentences],
            [(title, table) for title, table in _tables(record) if table.rows],
        )
        for record in records
    ]


def _tables(record: ExplanationRecord) -> list[tuple[str, Table]]:
    phases = [
        (clean(name), _ms(old), _ms(new), f"{(new - old) * 1e3:+.3g}")
        for name, (old, new) in record.phases.items()
    ]
    operators = [
        (clean(name), _ms(old), _ms(new), f"{(new - old) * 1e3:+.3g}", number(before, 3), number(after, 3))
        for name, (old, new, before, after) in record.operators.items()
    ]
    rates = [
        (clean(name), number(old, 3), number(new, 3), f"{new / old - 1:+.1%}" if old and new else ABSENT)
        for name, (old, new) in record.rates.items()
    ]
    settings = [(clean(name), clean(old), clean(new)) for name, (old, new) in record.settings.items()]
    times = ("old (ms a step)", "new (ms a step)", "change (ms)")
    return [
        ("Phases of a step", Table(("phase", *times), list(phases), _NUMBERS)),
        (
            "Operators and kernels, those that changed most first",
            Table(
                ("operator", *times, "old calls a step", "new calls a step"),
                list(operators),
                _NUMBERS,
                "Own time, aligned by name. A profiler slows what it watches, on both sides.",
            ),
        ),
        ("What the machine does by itself", Table(("rate", "old", "new", "change"), list(rates), _NUMBERS)),
        ("Settings in force", Table(("setting", "old", "new"), list(settings))),
    ]


def _ms(seconds: float) -> str:
    return number(seconds * 1e3, 3)
