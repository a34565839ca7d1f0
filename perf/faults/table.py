"""The catalogue as a table for ``docs/trust.md``: what is planted, what must catch it, what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from perf.faults.fault import INVALID, LAUNCH, Fault

__all__ = ["catcher", "result", "table"]

CATCHERS = {LAUNCH: "the launch fails, and says why", INVALID: "the launch is invalid, and says why"}

NOT_YET = "not yet"


class Outcome(Protocol):
    """What a self-check says of one fault (`perf.faults.selfcheck.results.Row`)."""

    @property
    def carried(self) -> bool:
        """Whether it was planted."""

    @property
    def caught(self) -> bool:
        """Whether it was caught."""

    @property
    def named(self) -> bool:
        """Whether it was named."""

    @property
    def seconds(self) -> float:
        """How long that took."""


def catcher(fault: Fault) -> str:
    """Say what must catch a fault: the launch itself, or a perf test and how it ends."""
    return CATCHERS.get(fault.caught_by) or f"`{fault.caught_by}`: {fault.verdict}"


def result(found: Outcome | None) -> str:
    """Say what came of a fault in a few words; one that was not planted is not called caught."""
    if found is None or not found.carried:
        return NOT_YET
    if not found.caught:
        return "not caught"
    return f"caught{' and named' if found.named else ', not named'}, {found.seconds:.0f} s"


def table(faults: Iterable[Fault], results: Mapping[str, Outcome]) -> str:
    """Return the catalogue in Markdown.

    Parameters
    ----------
    faults
        In the catalogue's order.
    results
        What came of each one when it was planted, by name.
    """
    lines = ["| fault | kind | what is wrong | what must catch it | planted |", "|---|---|---|---|---|"]
    lines += [
        f"| `{fault.name}` | {fault.kind} | {fault.what} | {catcher(fault)} | {result(results.get(fault.name))} |"
        for fault in faults
    ]
    return "\n".join(lines)
