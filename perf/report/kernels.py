"""What a trace by torch's profiler holds: names of its events, and what takes the most time. Reads trace files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perf.contract import LaunchRecord
from perf.report.text import clean

__all__ = ["PARTS", "TraceError", "kernels_in_words", "names_in_trace", "table_of"]

PARTS = ("step", "data", "data copy", "forward", "backward", "optimizer")
"""Ranges that the worker gives every traced step."""


class TraceError(ValueError):
    """A trace that can't be read; the message says which and why."""


def names_in_trace(path: Path) -> set[str]:
    """Return the names of all events of a trace, ``.json.gz``.

    Raises
    ------
    TraceError
        If it is no trace: missing, cut short, or without events.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            events = json.load(file)["traceEvents"]
        names = {str(event["name"]) for event in events if isinstance(event, dict) and "name" in event}
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path} can't be read as a trace: {error!r:.200}") from error
    if not names:
        raise TraceError(f"{path} holds no event")
    return names


def kernels_in_words(facts: Mapping[str, Any], rows: int = 5) -> list[str]:
    """Return sentences on what takes the most time in a trace, and on how busy the device was."""
    top = ", ".join(
        f"{clean(str(row['name']))} {row['share']:.1%} ({row['calls']} calls)" for row in facts["top"][:rows]
    )
    busy = facts.get("device_busy_share")
    sentences = [
        f"In {facts['steps']} traced steps ({facts['seconds'] * 1e3:.4g} ms) most time is in: {top}."
    ]
    if busy is not None:
        own = busy * facts["seconds"] / facts["steps"]
        sentences.append(f"The device is busy for {busy:.1%} of that time: {own * 1e3:.4g} ms a step.")
    return sentences


def table_of(record: LaunchRecord) -> str:
    """Return a traced launch's tables, one a rank, for the terminal; ends in a line feed."""
    lines = []
    for rank, facts in enumerate(record.trace_facts):
        if not facts.get("top"):
            continue
        busy = facts.get("device_busy_share")
        of_device = "" if busy is None else f", device busy {busy:.1%}"
        lines.append(f"rank {rank}: {facts['steps']} steps in {facts['seconds'] * 1e3:.4g} ms{of_device}")
        lines += [
            f"  {row['share']:6.1%}  {row['seconds'] * 1e3:10.3f} ms  {row['calls']:6d}  {clean(str(row['name']))}"
            for row in facts["top"]
        ]
    return "\n".join([*lines, ""])
