"""Tells which launches of a run ran beside each other, and whether any two had one GPU: ``python …/beside.py RUN``.

Exit status 1 where two launches had a GPU together.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


def seconds_of(record: Record, ranks: bool) -> float:
    """Return how long a launch went on from its `started_at`: by its own length, or by its ranks' words. Pure."""
    if not ranks:
        return float(record["launch_seconds"])
    return max(
        float(rank.get("until_read_back", rank.get("rates", 0.0))) for rank in record["startup_seconds"]
    )


def overlapping(records: Sequence[Record], ranks: bool = False) -> list[tuple[Record, Record]]:
    """Return the pairs of launches that ran at the same time. Pure."""
    return [
        (a, b)
        for a, b in itertools.combinations(records, 2)
        if a["started_at"] < b["started_at"] + seconds_of(b, ranks)
        and b["started_at"] < a["started_at"] + seconds_of(a, ranks)
    ]


def gpus_of(record: Record) -> set[str]:
    """Return the UUIDs of a launch's GPUs. Pure."""
    return {uuid for rank in record["gpu_uuids"] for uuid in rank if uuid}


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder with records.jsonl")
    parser.add_argument(
        "--ranks",
        action="store_true",
        help="count from the ranks' start to their reading back: for records whose started_at is behind the imports",
    )
    options = parser.parse_args(words)
    text = (options.run / "records.jsonl").read_text(encoding="utf-8")
    records = [record for line in text.splitlines() if gpus_of(record := json.loads(line))]
    beside = overlapping(records, options.ranks)
    together = [(a, b) for a, b in beside if gpus_of(a) & gpus_of(b)]
    for a, b in together:
        print(f"{a['launch']} and {b['launch']} had {', '.join(sorted(gpus_of(a) & gpus_of(b)))} together")
    seconds = [float(record["launch_seconds"]) for record in records]
    held = sum(took * len(gpus_of(record)) for took, record in zip(seconds, records, strict=True))
    print(f"one after the other they take {sum(seconds):.0f} s; they held GPUs for {held:.0f} s")
    print(
        f"{len(records)} launches on {len(set().union(*map(gpus_of, records)))} GPUs; {len(beside)} pairs ran at the "
        f"same time, {len(together)} of them on a GPU together"
    )
    return 1 if together else 0


if __name__ == "__main__":
    sys.exit(main())
