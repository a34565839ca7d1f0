"""Times what the images of a launch cost: ``python docs/measurements/unpacking.py``, in a Python with torch.

For each workload with images: unpacked and checked, and read from the copy that the first launch keeps; the medians of
three processes each, since a process hashes a file once.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ONE = """
import sys, time
from models import decoded
from models.interface import load_workload
workload = load_workload(sys.argv[1])
if sys.argv[3] == "unpacked":
    decoded._read = lambda copy: None
    decoded._keep = lambda *ignored: None
before = time.perf_counter()
workload.train_set(None, sys.argv[2])
print(time.perf_counter() - before)
"""


def seconds(workload: str, cache: str, how: str) -> float:
    """Return what the training set of a workload takes in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", ONE, workload, cache, how],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def main() -> None:
    """Print a row a workload."""
    with tempfile.TemporaryDirectory() as cache:
        for workload in ("mnist_cnn", "resnet50"):
            # Makes generated images, and the copy.
            seconds(workload, cache, "kept")
            found = {
                how: statistics.median(seconds(workload, cache, how) for _ in range(3))
                for how in ("unpacked", "kept")
            }
            print(f"{workload}: unpacked {found['unpacked']:.2f} s, from the copy {found['kept']:.2f} s")


if __name__ == "__main__":
    main()
