"""Tells how ranks began: ``python docs/measurements/first_use.py RUN [RUN …]``.

A row a strategy and number of GPUs, of launches that train: how many, seconds of the first use of a GPU on the slowest
rank (median, least, most), and the median of what a launch took beside all that its records name. A row a clock that
timed their windows, of one rank and of several, then, and how many windows were dropped: those launches trained more
than their warm-up, their window, and what an epoch's end and a loader's new queue take, a tenth of the window.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

NAMED = ("interpreter", "imports", "fork", "data", "devices", "process_group", "until_read_back")


def trained(runs: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the launches that trained on GPUs, and say when they used these first."""
    for run in runs:
        for line in (Path(run) / "records.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            starts = record["startup_seconds"]
            if record["plan"] in ("window", "epochs") and starts and all("devices" in one for one in starts):
                yield record


def unnamed(record: Mapping[str, Any]) -> float:
    """Return the seconds of a launch that no part of its slowest rank's names. Pure."""
    return record["launch_seconds"] - max(
        sum(start.get(name, 0.0) for name in NAMED) for start in record["startup_seconds"]
    )


def dropped(record: Mapping[str, Any]) -> bool:
    """Return whether a launch of one rank trained so many steps more that a window was dropped. Pure."""
    window = len(record["step_seconds"][0])
    return record["total_steps"][0] - record["warmup_steps"] - window > max(50, window / 10)


def main(runs: Sequence[str]) -> None:
    """Print the rows."""
    uses: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    clocks: Counter[tuple[str, str]] = Counter()
    anew = 0
    for record in trained(runs):
        first = max(start["devices"] for start in record["startup_seconds"])
        uses[record["strategy"], record["gpus"]].append((first, unnamed(record)))
        if record["plan"] == "window":
            ranks = "one rank" if len(record["clocks"]) == 1 else "several ranks"
            clocks[ranks if record["mode"] != "io" else "a loader alone", str(record["clocks"][0])] += 1
            anew += record["clocks"] == ["host"] and dropped(record)
    for (strategy, gpus), found in sorted(uses.items()):
        firsts, rest = zip(*found, strict=True)
        print(
            f"{strategy}, {gpus} GPUs: {len(found)} launches, first use {statistics.median(firsts):.2f} s "
            f"({min(firsts):.2f} to {max(firsts):.2f}), not named {statistics.median(rest):.2f} s"
        )
    for (who, clock), count in sorted(clocks.items()):
        print(f"{who}: {count} windows by {clock}")
    print(f"{anew} launches dropped a window")


if __name__ == "__main__":
    main(sys.argv[1:])
