"""Measurements that nothing is held against, gathered by why: a new system has dozens, all for one reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perf.report.summary import VerdictRow

NO_REASON = "no reason was recorded"


@dataclass(frozen=True)
class Loose:
    """Measurements with the same reason: their rows, in order."""

    why: str
    rows: Sequence[VerdictRow]

    @property
    def what(self) -> str:
        """Every metric by name, those of one subject together."""
        subjects: dict[str, list[str]] = {}
        for row in self.rows:
            subjects.setdefault(row.subject, []).append(row.metric)
        return "; ".join(
            f"{', '.join(dict.fromkeys(metrics))} of {subject}" for subject, metrics in subjects.items()
        )


def gathered(rows: Iterable[VerdictRow]) -> list[Loose]:
    """Return the measurements, one entry a reason, in the order in which the reasons appear."""
    found: dict[str, list[VerdictRow]] = {}
    for row in rows:
        found.setdefault("; ".join(row.reasons) or NO_REASON, []).append(row)
    return [Loose(why, those) for why, those in found.items()]
