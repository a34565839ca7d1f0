"""The catalogue as a table for ``docs/faults.md``: what is planted, what must catch it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perf.faults.catalogue import INVALID, LAUNCH, Fault

CATCHERS = {LAUNCH: "the launch fails, and says why", INVALID: "the launch is invalid, and says why"}


def catcher(fault: Fault) -> str:
    """Say what must catch a fault: the launch itself, or a perf test and how it ends."""
    return CATCHERS.get(fault.caught_by) or f"`{fault.caught_by}`: {fault.verdict}"


def table(faults: Iterable[Fault], results: Mapping[str, str]) -> str:
    """Return the catalogue in Markdown.

    Parameters
    ----------
    faults
        In the catalogue's order.
    results
        What came of each one when it was planted, by name; one that was not planted says so.
    """
    lines = ["| fault | kind | what is wrong | what must catch it | planted |", "|---|---|---|---|---|"]
    for fault in faults:
        result = results.get(fault.name, "not yet")
        lines.append(f"| `{fault.name}` | {fault.kind} | {fault.what} | {catcher(fault)} | {result} |")
    return "\n".join(lines)
