"""Tells what launches of a run spent their time on: ``python docs/measurements/launch_parts.py RUN [RUN …]``.

A row a variant and launcher, medians in seconds: imports, the first use of the GPU (0 in older records, whose data came
behind it), data before it and behind it, until all was built (the ring of synthetic batches is then), the first step,
the window, the whole launch. Left out: launches slowed to say why, flagged ones (planted), other plans, and forks that
began with a new server.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launch_seconds import slowed
from launchers import has_served

NAMES = ("imports", "devices", "data before", "behind", "built", "first step", "window", "whole")


def parts(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return a launch's parts in seconds, on its first rank. Pure."""
    start = record["startup_seconds"][0]
    built = start["until_warm_up"] - start["until_build"]
    before = (start.get(name, 0.0) for name in ("imports", "devices", "data"))
    whole = (record["first_step_seconds"], record["window_seconds"], record["launch_seconds"])
    return (*before, start["until_build"], built, *whole)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for run in parser.parse_args().runs:
        for line in (run / "records.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["plan"] != "window" or slowed(record) or record["flags"] or not has_served(record):
                continue
            found[f"{record['variant']}, {record['launcher']}"].append(parts(record))
    for variant, launches in sorted(found.items()):
        medians = zip(NAMES, map(statistics.median, zip(*launches, strict=True)), strict=True)
        told = ", ".join(f"{name} {seconds:.2f}" for name, seconds in medians)
        print(f"{variant}: {len(launches)} launches, {told} s")


if __name__ == "__main__":
    main()
