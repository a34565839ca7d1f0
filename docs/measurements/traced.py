"""Tells what traces hold: ``python docs/measurements/traced.py TRACE.json.gz …``.

For each one: steps, how long one took, for how much of the time a device was busy, the device's own work a step (of
several devices the mean, and each), and what takes the most of the work of all; NCCL's kernels beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from perf.training import tracefile  # noqa: E402

KERNELS = 5


def told(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the events of a trace say, a line each. Pure."""
    steps = [e for e in events if e["name"] == "step" and e.get("cat") == "user_annotation"]
    work = [e for e in events if e.get("cat") in tracefile.ON_DEVICE]
    if not steps or not work:
        return ["no step of the suite's, or no work of a device: nothing to tell"]
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in steps + work]
    seconds = (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1e6
    busy = tracefile.busy_share(events, seconds) or 0.0
    rows = tracefile.device_rows(events)
    whole = sum(row["seconds"] for row in rows)
    step = tracefile.step_seconds(events) or 0.0
    own = busy * seconds / len(steps) * 1e3
    beginning = f"{len(steps)} steps of {step * 1e3:.3g} ms, device busy {busy:.1%}"
    lines = [f"{beginning}, {own:.3g} ms and {len(work) / len(steps):.0f} kernels, copies and fills a step"]
    lines += [
        _of_device(device, found, seconds, len(steps)) for device, found in sorted(by_device(work).items())
    ]
    for row in rows[:KERNELS]:
        calls = row["calls"] / len(steps)
        lines.append(f"  {row['seconds'] / whole:6.1%}  {calls:5.0f} a step  {row['name'][:100]}")
    return lines


def by_device(work: Sequence[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Return each device's kernels, copies and fills. Pure."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for event in work:
        found.setdefault(tracefile.device_of(event), []).append(event)
    return found


def _of_device(device: Any, work: Sequence[dict[str, Any]], seconds: float, steps: int) -> str:
    busy = tracefile.busy_share(work, seconds) or 0.0
    nccl = sum(event["dur"] for event in work if "nccl" in event["name"].lower()) / steps / 1e3
    own = busy * seconds / steps * 1e3
    return f"  device {device}: busy {busy:.1%}, {own:.3g} ms and {len(work) / steps:.0f} a step, NCCL {nccl:.3g} ms"


def main() -> None:
    """Print each trace's lines."""
    for path in sys.argv[1:]:
        print(Path(path).name, *told(tracefile.read_events(path)), sep="\n")


if __name__ == "__main__":
    main()
