"""Tells how long launches on GPUs took: ``python docs/measurements/launch_seconds.py [FOLDER …]``; of all kept here.

A row a kind: workload, plan, strategy, precision, launcher, whether it was compiled; launches, median and longest.
Left out: launches that were slowed to say why. Plans go by these medians (``perf/suite/costs.py``).
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def kept(folders: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield every launch record on a GPU below some folders."""
    for path in sorted(path for folder in folders for path in folder.rglob("records.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["device"] == "cuda":
                yield record


def kind(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what launches are told apart by. Pure. Records from before there were launchers are of fresh ones."""
    compiled = "compiled" if "compile" in record.get("optimizations", ()) else "eager"
    names = ("workload", "plan", "strategy", "precision")
    return (*(record[name] for name in names), record.get("launcher") or "fresh", compiled)


def slowed(record: Mapping[str, Any]) -> bool:
    """Say whether a launch was one that tells why. Pure."""
    watched = record.get("phase_seconds") or record.get("line_profiles") or record.get("traces")
    return bool(watched) or any(record.get("operators") or ())


def main() -> None:
    """Print the table."""
    seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for record in kept([Path(word) for word in sys.argv[1:]] or [HERE]):
        if not slowed(record):
            seconds[kind(record)].append(record["launch_seconds"])
    for names, found in sorted(seconds.items()):
        print(
            f"{' '.join(names)}: {len(found)} launches, {statistics.median(found):.1f} s, at most {max(found):.1f} s"
        )


if __name__ == "__main__":
    main()
