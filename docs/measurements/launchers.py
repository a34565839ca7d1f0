"""Holds launches by fork against fresh ones: ``python docs/measurements/launchers.py RUN [RUN …]``.

For each run and launcher: launches, the middle launch without those that began with a new server, and which part of it
was timed; then the step by fork over the fresh one, Hodges-Lehmann with Mann and Whitney's interval of 95 %.
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


def middle(records: Sequence[dict[str, Any]]) -> tuple[float, float, int]:
    """Return the median seconds of a launch, the part that was timed, and how many began with a new server. Pure."""
    plain = [
        record
        for record in records
        if record["launcher"] == "fresh"
        or record["launch_seconds"] - record["startup_seconds"][0]["until_read_back"] < SERVER
    ]
    whole = statistics.median(record["launch_seconds"] for record in plain)
    timed = statistics.median(record["window_seconds"] for record in plain)
    return whole, timed / whole, len(records) - len(plain)


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
            whole, timed, servers = middle(side)
            print(
                f"  {name}: {len(side)} launches, {servers} with a new server, {whole:.1f} s, {timed:.0%} timed"
            )
        steps = {name: [r["median_step_seconds"] for r in side] for name, side in sides.items()}
        estimate, low, high = ratio(steps["fork"], steps["fresh"])
        print(f"  step, fork over fresh: {estimate:.4f} ({low:.4f} to {high:.4f})")


if __name__ == "__main__":
    main()
