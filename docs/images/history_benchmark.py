"""How long ``python -m perf.report history`` takes over many runs: ``python docs/images/history_benchmark.py [RUNS]``.

Runs are copies of six stored launches of a real one, an hour apart, their throughput moved by 1 % and their stack
renewed six times. A process of its own reads and draws them; its CPU time and wall time are printed.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs" / "measurements" / "2026-11-28-compare" / "records.jsonl"
LAUNCHES = 6
STACKS = 6


def make(folder: Path, runs: int) -> None:
    """Write so many runs below a folder."""
    dice = random.Random(1)  # noqa: S311 - noise, not secrets
    lines = SOURCE.read_text(encoding="utf-8").splitlines()[:LAUNCHES]
    launches = [json.loads(line) | {"side": "", "group": "loader@mnist_cnn-cpu"} for line in lines]
    for number in range(runs):
        run = folder / f"{number:06d}"
        run.mkdir()
        changes = {"started_at": 1.6e9 + 3600 * number, "stack": {"torch": f"2.{STACKS * number // runs}"}}
        with (run / "records.jsonl").open("w", encoding="utf-8") as file:
            for launch in launches:
                rate = launch["samples_per_second"] * (1 + dice.gauss(0, 0.01))
                file.write(json.dumps({**launch, **changes, "samples_per_second": rate}) + "\n")
        (run / "environment.json").write_text(
            '{"cpu_model": "made up", "stack": {"gpus": []}}', encoding="utf-8"
        )


def main() -> None:
    """Make the runs, draw them, and print what that took."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs"
        folder.mkdir()
        make(folder, runs)
        size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
        started = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "perf.report",
            "history",
            str(folder),
            f"--output={name}/history.html",
        ]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        taken = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(done.stdout.strip().splitlines()[-1].partition(";")[0])
    print(
        f"{runs} runs of {LAUNCHES} launches, {size / 2**20:.0f} MiB: {used.ru_utime:.1f} s of CPU time, "
        f"{used.ru_stime:.1f} s of the system's, {taken:.1f} s by the clock, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
