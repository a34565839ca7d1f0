"""Tells how far hosts ran ahead of their devices: ``python docs/measurements/queued.py [--below MS] [RUN …]``.

Of all kept here without a run. A row a variant: launches, and what the rank that was least ahead, and the one that was
furthest, had queued when the window ended, in steps: least, median and most over the launches. What
``perf/verdict/bound.py`` goes by.
``--below MS`` tells of launches of one rank that train, with steps of fewer milliseconds; a last line then says how
many of them had queued less than a tenth of a step, and how many had more: what ``perf/training/held_up.py`` goes by.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

TENTH = 0.1
"""As `perf.training.held_up.BEHIND` is, without its import of torch."""


def queued(record: dict[str, Any]) -> tuple[float, float] | None:
    """Return the steps queued by the rank least and by that furthest ahead; None where a launch does not say. Pure."""
    seconds = [found for found in record.get("drain_seconds") or () if found is not None]
    step = record.get("median_step_seconds")
    slowed = record.get("phase_seconds") or any(record.get("operators") or ())
    if record["device"] != "cuda" or record["plan"] != "window" or not seconds or not step or slowed:
        return None
    return min(seconds) / step, max(seconds) / step


def short(record: dict[str, Any], milliseconds: float) -> bool:
    """Return whether a launch of one rank trained with shorter steps. Pure."""
    alone = len(record["drain_seconds"]) == 1 and record["mode"] != "io"
    return alone and record["median_step_seconds"] < milliseconds / 1000


def sides(steps: list[float]) -> str:
    """Return a line on how many launches had queued less than a tenth of a step, and how many had more. Pure."""
    less = [found for found in steps if found < TENTH]
    more = [found for found in steps if found >= TENTH]
    told = [f"{len(less)} launches had queued {min(less):.3f} to {max(less):.3f} of a step"] if less else []
    told += [f"{len(more)} had {min(more):.3f} to {max(more):.3g}"] if more else []
    return ", ".join(told) or "no launch is told of"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Tells how far hosts ran ahead of their devices.")
    parser.add_argument("--below", type=float, metavar="MS", help="only one rank's steps of fewer ms")
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", default=[Path(__file__).parent])
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for folder in options.runs:
        for path in sorted(folder.rglob("records.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                steps = queued(record)
                if steps is not None and (options.below is None or short(record, options.below)):
                    found[record["variant"]].append(steps)
    for variant, pairs in sorted(found.items()):
        told = (
            f"{min(side):.3f} {statistics.median(side):.3f} {max(side):.3f}"
            for side in zip(*pairs, strict=True)
        )
        print(f"{variant}: {len(pairs)} launches, least ahead {next(told)}, furthest {next(told)}")
    if options.below is not None:
        print(sides([least for pairs in found.values() for least, _ in pairs]))


if __name__ == "__main__":
    main()
