"""What a self-check came to: rows, counts, and the file ``selfcheck.json``. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BadResults", "Clean", "Results", "Row", "read"]

SCHEMA = 1

ENOUGH = 1.5
"""A statistical fault is planted at so many times the change that its judgement could have seen, or more."""


class BadResults(ValueError):
    """A file that holds no results of a self-check. The message says where, and what is wrong."""


@dataclass(frozen=True)
class Row:
    """One fault.

    Attributes
    ----------
    carried
        Whether it was planted; else `why_not` says why it wasn't.
    caught, named
        Whether what must catch it did, and whether its words named it.
    by
        What caught it: the launch, or a perf test.
    said
        The words that named it; where they did not, the beginning of what was said instead.
    seconds
        How long planting and judging took.
    size
        The planted change in multiples of the one that its judgement could have seen; None for exact facts, and where
        the judgement could not say.
    """

    name: str
    carried: bool
    why_not: str = ""
    caught: bool = False
    named: bool = False
    by: str = ""
    said: str = ""
    seconds: float = 0.0
    size: float | None = None


@dataclass(frozen=True)
class Clean:
    """One judgement of launches without a fault. `verdict` is its own, or ``failed`` where a launch gave no record."""

    number: int
    what: str
    verdict: str
    launches: int
    seconds: float
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Results:
    """A whole self-check. `machine` says where and when, as ``environment.json`` does."""

    machine: Mapping[str, Any]
    rows: Sequence[Row]
    clean: Sequence[Clean]
    seconds: float

    @property
    def good(self) -> bool:
        """Whether every fault that was carried was caught and named, and nothing clean failed."""
        carried = [row for row in self.rows if row.carried]
        return bool(carried) and all(row.caught and row.named for row in carried) and not self.false_alarms

    @property
    def false_alarms(self) -> int:
        """Clean judgements that failed, were invalid, or had a launch that failed."""
        return sum(one.verdict not in ("pass", "inconclusive") for one in self.clean)

    def counts(self) -> dict[str, int]:
        """Return how many faults were planted, caught and named, and what came of the clean judgements."""
        carried = [row for row in self.rows if row.carried]
        return {
            "planted": len(carried),
            "caught": sum(row.caught for row in carried),
            "named": sum(row.caught and row.named for row in carried),
            "clean_runs": len(self.clean),
            "false_alarms": self.false_alarms,
            "clean_inconclusive": sum(one.verdict == "inconclusive" for one in self.clean),
        }

    def text(self) -> str:
        """Return the file's text."""
        found = {
            "schema": SCHEMA,
            **self.counts(),
            "seconds": round(self.seconds, 1),
            "machine": dict(self.machine),
            "faults": [dataclasses.asdict(row) for row in self.rows],
            "clean": [dataclasses.asdict(one) for one in self.clean],
        }
        return json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False) + "\n"

    def lines(self) -> list[str]:
        """Return the account for the terminal: what went wrong, then the counts."""
        found = [
            f"{row.name}: {'caught, but not named' if row.caught else 'not caught'}: {row.said or 'nothing was said'}"
            for row in self.rows
            if row.carried and not (row.caught and row.named)
        ]
        found += [
            f"clean {one.number}: {one.verdict}: {'; '.join(one.reasons) or one.what}"
            for one in self.clean
            if one.verdict != "pass"
        ]
        found += [f"{row.name}: not planted: {row.why_not}" for row in self.rows if not row.carried]
        weak = [row.name for row in self.rows if row.size is not None and row.size < ENOUGH]
        if weak:
            found.append(f"planted at less than {ENOUGH} times what could be seen: {', '.join(weak)}")
        counts = self.counts()
        whole = (
            f"{counts['planted']} faults planted, {counts['caught']} caught, {counts['named']} of them named; "
            f"{counts['clean_runs']} clean judgements, {counts['false_alarms']} false alarms, "
            f"{counts['clean_inconclusive']} inconclusive; {self.seconds:.0f} s"
        )
        return [*found, whole]


def read(text: str, where: str) -> Results:
    """Read the text of a ``selfcheck.json``.

    Raises
    ------
    BadResults
        If it holds something else.
    """
    try:
        found = json.loads(text)
        if found["schema"] != SCHEMA:
            raise BadResults(f"{where}: schema {found['schema']}, {SCHEMA} was expected")
        return Results(
            machine=found["machine"],
            rows=[Row(**row) for row in found["faults"]],
            clean=[Clean(**one) for one in found["clean"]],
            seconds=found["seconds"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, BadResults):
            raise
        raise BadResults(f"{where} holds no results of a self-check ({error!r})") from error
