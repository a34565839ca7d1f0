"""Tells the median ratio of several runs as one: ``PYTHON docs/measurements/pooled.py FILE [FILE …]``.

PYTHON has torch. Files are those that ``python -m perf.training.overhead --ratios FILE`` writes: a ratio a line. A row
a file and one for all of them: how many pairs, their median and its exact interval, from order statistics, of 95 %; how
much pairs spread (standard deviation), and whether neighbours go together (correlation), which would widen it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from perf.training.paired import median_interval  # noqa: E402


def told(name: str, ratios: Sequence[float]) -> str:
    """Return a row. Pure."""
    low, high = median_interval(ratios)
    together = statistics.correlation(ratios[:-1], ratios[1:])
    return (
        f"{name}: {len(ratios)} pairs, {statistics.median(ratios):.4f} ({low:.4f} to {high:.4f}), "
        f"spread {statistics.stdev(ratios):.1%}, neighbours {together:.2f}"
    )


def main(paths: Sequence[str]) -> None:
    """Print the rows."""
    found = {path: [float(line) for line in Path(path).read_text(encoding="ascii").split()] for path in paths}
    for path, ratios in found.items():
        print(told(path, ratios))
    print(told("all", [ratio for ratios in found.values() for ratio in ratios]))


if __name__ == "__main__":
    main(sys.argv[1:])
