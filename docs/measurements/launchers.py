"""Holds launches by fork against fresh ones: ``python docs/measurements/launchers.py RUN [RUN …]``.

For each run and launcher: launches, the middle launch without those that began with a new server and how much longer
these took, and which part of it was timed; what a verdict of five launches a side costs, ten by the mean of these, and
the middle fork over the middle fresh launch; then the step by fork over the fresh one, Hodges-Lehmann with Mann and
Whitney's interval of 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from perf.verdict.looks import (  # noqa: E402
    hodges_lehmann,
    kth_largest,
    kth_smallest,
    pairwise_differences,
)

SERVER = 4.0
"""Seconds of a fork's launch outside of what its process timed; more is a new server's start. Without one it is 0.9."""


A_VERDICT = 10
"""Launches of a verdict with five a side."""


def has_served(record: dict[str, Any]) -> bool:
    """Return whether a launch was fresh, or forked from a server that was there already. Pure."""
    start = record["startup_seconds"][0]
    # Older records name neither: what they don't name takes less than a second.
    named = sum(start.get(part, 0.0) for part in ("fork", "data", "devices", "process_group"))
    outside = record["launch_seconds"] - named - start["until_read_back"]
    return record["launcher"] == "fresh" or outside < SERVER


def seconds(records: Sequence[dict[str, Any]]) -> list[float]:
    """Return how long launches took. Pure."""
    return [record["launch_seconds"] for record in records]


def told(name: str, records: Sequence[dict[str, Any]]) -> str:
    """Return the row of a side. Pure."""
    plain = [record for record in records if has_served(record)]
    whole = statistics.median(seconds(plain))
    timed = statistics.median(record["window_seconds"] for record in plain)
    later = [taken - whole for taken in seconds([one for one in records if not has_served(one)])]
    longer = f" ({min(later):.1f} to {max(later):.1f} s longer)" if later else ""
    return (
        f"  {name}: {len(records)} launches, {len(later)} with a new server{longer}, {whole:.2f} s, "
        f"{timed / whole:.1%} timed; {A_VERDICT} take {A_VERDICT * statistics.mean(seconds(plain)):.0f} s"
    )


def ratio(new: Sequence[float], old: Sequence[float]) -> tuple[float, float, float]:
    """Return by how much longer steps are, with an interval of 95 % (normal approximation of the ranks). Pure."""
    found = pairwise_differences([math.log(step) for step in new], [math.log(step) for step in old])
    pairs = len(found)
    rank = max(1, math.floor(pairs / 2 - 1.96 * math.sqrt(pairs * (len(new) + len(old) + 1) / 12)))
    estimate = hodges_lehmann(found)
    return math.exp(estimate), math.exp(kth_smallest(found, rank)), math.exp(kth_largest(found, rank))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    for run in parser.parse_args().runs:
        lines = (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        sides = {name: [r for r in records if r["launcher"] == name] for name in ("fresh", "fork")}
        print(f"{run.name}: {records[0]['variant']}")
        for name, side in sides.items():
            print(told(name, side))
        fork, fresh = (
            statistics.median(seconds([one for one in sides[name] if has_served(one)]))
            for name in ("fork", "fresh")
        )
        print(f"  a launch, fork over fresh: {fork / fresh:.3f}")
        steps = {name: [r["median_step_seconds"] for r in side] for name, side in sides.items()}
        estimate, low, high = ratio(steps["fork"], steps["fresh"])
        print(f"  step, fork over fresh: {estimate:.4f} ({low:.4f} to {high:.4f})")


if __name__ == "__main__":
    main()
