"""Whether a rank whose time was nearly over still took steps: what is slow is told from what is stuck."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from perf import contract
from perf.launch.text import read_tail

PROGRESS_BYTES = 4096


@dataclass(frozen=True)
class Progress:
    """Steps of a rank: so many in all, and so many of them in the last seconds that were looked at."""

    steps: int
    taken: int
    seconds: float

    def __str__(self) -> str:
        count = {0: "no step", 1: "1 step"}.get(self.taken, f"{self.taken} steps")
        return f"took {count} in {self.seconds:.2g} s"


def read_progress(out_dir: str, rank: int) -> Progress | None:
    """Read what a rank told of its progress; None where it told nothing, or nothing that can be meant."""
    path = Path(out_dir, contract.PROGRESS_FILE.format(rank=rank))
    try:
        told = json.loads(read_tail(path, PROGRESS_BYTES))
        found = Progress(int(told["steps"]), int(told["taken"]), float(told["seconds"]))
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return found if 0 <= found.taken <= found.steps and 0 < found.seconds < math.inf else None
