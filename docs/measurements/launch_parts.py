"""Tells what launches of a run spent their time on: ``python docs/measurements/launch_parts.py RUN [RUN …]``.

A row a variant, medians in seconds: until data were there, until all was built (the ring of synthetic batches is then),
the first step, the window, the whole launch. Left out: launches slowed to say why, flagged ones (planted), other plans.
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


def parts(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return a launch's parts in seconds, on its first rank. Pure."""
    start = record["startup_seconds"][0]
    built = start["until_warm_up"] - start["until_build"]
    whole = (record["first_step_seconds"], record["window_seconds"], record["launch_seconds"])
    return (start["until_build"], built, *whole)


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
            if record["plan"] == "window" and not slowed(record) and not record["flags"]:
                found[record["variant"]].append(parts(record))
    for variant, launches in sorted(found.items()):
        data, built, first, window, whole = map(statistics.median, zip(*launches, strict=True))
        print(
            f"{variant}: {len(launches)} launches, data {data:.2f}, built {built:.2f}, first step {first:.2f}, "
            f"window {window:.2f}, whole {whole:.1f} s"
        )


if __name__ == "__main__":
    main()
