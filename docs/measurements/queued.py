"""Tells how far hosts ran ahead of their devices: ``python docs/measurements/queued.py RUN …``.

A row a variant: launches, and what the rank that was least ahead, and the one that was furthest, had queued when the
window ended, in steps: least, median and most over the launches. What ``perf/verdict/bound.py`` goes by.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def queued(record: dict[str, Any]) -> tuple[float, float] | None:
    """Return the steps queued by the rank least and by that furthest ahead; None where a launch does not say. Pure."""
    seconds = [found for found in record.get("drain_seconds") or () if found is not None]
    step = record.get("median_step_seconds")
    slowed = record.get("phase_seconds") or any(record.get("operators") or ())
    if record["device"] != "cuda" or record["plan"] != "window" or not seconds or not step or slowed:
        return None
    return min(seconds) / step, max(seconds) / step


def main() -> None:
    """Print the table."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for folder in map(Path, sys.argv[1:]):
        for path in sorted(folder.rglob("records.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                steps = queued(record)
                if steps is not None:
                    found[record["variant"]].append(steps)
    for variant, pairs in sorted(found.items()):
        told = (
            f"{min(side):.3f} {statistics.median(side):.3f} {max(side):.3f}"
            for side in zip(*pairs, strict=True)
        )
        print(f"{variant}: {len(pairs)} launches, least ahead {next(told)}, furthest {next(told)}")


if __name__ == "__main__":
    main()
