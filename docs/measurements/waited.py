"""Tells for which part of their windows launches waited for data: ``python docs/measurements/waited.py [FOLDER …]``.

Of all kept here without a folder. A device a line: launches, and the two shares next to `perf.verdict.pace.WAITED`.
Left out: launches under a profile, and those whose waits tell nothing (data on the device).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from perf.verdict.pace import WAITED  # noqa: E402


def waited(record: Mapping[str, Any]) -> float | None:
    """Return the part of a window that the rank which waits most waited; None where it tells nothing. Pure."""
    if record["mode"] != "full" or record["loader"] == "resident" or slowed(record):
        return None
    pairs = zip(record["wait_seconds"], record["window_seconds_per_rank"], strict=False)
    return max((wait / window for wait, window in pairs if window > 0.0), default=None)


def slowed(record: Mapping[str, Any]) -> bool:
    """Say whether a launch was profiled. Pure."""
    return any(record.get(name) for name in ("trace_facts", "line_profiles", "phase_seconds"))


def around(shares: Iterable[float], border: float = WAITED) -> tuple[float, float]:
    """Return the largest share below a border and the smallest above it. Pure."""
    found = list(shares)
    below, above = [one for one in found if one <= border], [one for one in found if one > border]
    return max(below, default=0.0), min(above, default=1.0)


def main(words: Sequence[str]) -> None:
    """Print the table."""
    shares: dict[str, list[float]] = {}
    for folder in [Path(word) for word in words] or [HERE]:
        for path in sorted(folder.rglob("records.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                share = waited(record)
                if share is not None:
                    shares.setdefault(record["device"], []).append(share)
    for device, found in sorted(shares.items()):
        below, above = around(found)
        most = f", the others for {above:.1%} and more" if above <= 1.0 and above in found else ""
        print(f"{device}: {len(found)} launches waited for up to {below:.1%}{most}")


if __name__ == "__main__":
    main(sys.argv[1:])
