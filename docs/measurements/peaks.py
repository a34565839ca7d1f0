"""Holds peaks of memory of whole launches against those of their windows: ``python docs/measurements/peaks.py RUN …``.

A line a strategy and workload: ranks (DataParallel: devices), the gradients' size, how many lie alike (by at most
`ALIKE`), and by how much the others lie above.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MIB = 2**20

ALIKE = 2.5
"""MiB by which the two peaks of one rank differ where they are called alike: the least of the others differ by 3.7."""


def excesses(record: Mapping[str, Any]) -> Iterator[float]:
    """Yield, a device of a rank, by how many MiB the launch's peak lies above the window's, if both are known. Pure."""
    windows = record.get("window_peak_memory_bytes") or []
    for whole, window in zip(record["peak_memory_bytes"], windows, strict=False):
        for device in whole.keys() & window.keys():
            yield (whole[device] - window[device]) / MIB


def kind(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return what launches are told apart by; a silent DDP builds no buckets anew. Pure."""
    silent = "nosync" in record.get("ddp_switches", ())
    return record["strategy"] + (" that stays silent" if silent else ""), record["workload"]


def main(runs: Sequence[str]) -> None:
    """Print the table."""
    found: dict[tuple[str, str], list[float]] = {}
    gradients: dict[str, float] = {}
    for run in runs:
        for line in (Path(run) / "records.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["mode"] != "io":
                found.setdefault(kind(record), []).extend(excesses(record))
                gradients[record["workload"]] = 4 * record["parameters"] / MIB
    for (strategy, workload), all_of_it in sorted(found.items()):
        more = sorted(one for one in all_of_it if one > ALIKE)
        above = f", {len(more)} above by {more[0]:.1f} to {more[-1]:.1f} MiB" if more else ""
        print(
            f"{strategy}, {workload}: {len(all_of_it)} ranks or devices, gradients {gradients[workload]:.1f} MiB, "
            f"{len(all_of_it) - len(more)} alike{above}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
