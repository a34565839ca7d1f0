"""What a trace that torch's profiler wrote says of steps, collectives and the device. Reads the file, needs no torch.

The profiler's own sums mix a kernel with the operators and ranges that it belongs to: an optimizer's range has a shadow
on the device, from its first kernel to its last, gaps and all. The file names the kind of each event.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Optional

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Kinds of events in which a device works."""


def read_events(path: str) -> list[dict[str, Any]]:
    """Return the events of a trace, ``.json.gz``, that have a duration; ``ts`` and ``dur`` are microseconds."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        # Not strict: a name may hold a control character.
        events = json.load(file, strict=False)["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def step_seconds(events: Iterable[dict[str, Any]]) -> Optional[float]:
    """Return the median seconds of the ranges ``step`` on the host; None where there is none."""
    found = [e["dur"] / 1e6 for e in events if e["name"] == "step" and e.get("cat") == "user_annotation"]
    return statistics.median(found) if found else None


def count_of(events: Iterable[dict[str, Any]], name: str) -> int:
    """Return how many events have that name."""
    return sum(event["name"] == name for event in events)


def device_rows(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ``name``, ``calls`` and ``seconds`` of each kernel, copy and fill, those that take the most first."""
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") in ON_DEVICE:
            name = event["name"][:200]
            row = rows.setdefault(name, {"name": name, "calls": 0, "seconds": 0.0})
            row["calls"] += 1
            row["seconds"] += event["dur"] / 1e6
    return sorted(rows.values(), key=lambda row: -row["seconds"])


def device_of(event: dict[str, Any]) -> Any:
    """Return the number of the device that a kernel, copy or fill ran on."""
    return event.get("args", {}).get("device", event.get("pid"))


def busy_share(events: Iterable[dict[str, Any]], seconds: float) -> Optional[float]:
    """Return the part of `seconds` in which a device works, the mean of those that work at all; None where none does.

    DataParallel has several devices in one trace.
    """
    spans: dict[Any, list[tuple[float, float]]] = {}
    for event in events:
        if event.get("cat") in ON_DEVICE:
            spans.setdefault(device_of(event), []).append((event["ts"], event["ts"] + event["dur"]))
    if not spans or seconds <= 0:
        return None
    return statistics.fmean(union(found) / 1e6 / seconds for found in spans.values())


def union(intervals: Iterable[Sequence[float]]) -> float:
    """Return the length of the union of intervals: kernels on several streams overlap."""
    total, end = 0.0, float("-inf")
    for first, last in sorted((i[0], i[1]) for i in intervals):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total
