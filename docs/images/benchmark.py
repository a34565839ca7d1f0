"""Measures how fast a report of many variants opens: ``python docs/images/benchmark.py``; see docs/report.md.

Each time a fresh browser opens the file: nothing is compiled or cached before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "perf" / "report" / "helpers")]

import chromium  # noqa: E402
import made_up  # noqa: E402

from perf.report.page import write  # noqa: E402
from perf.report.stored import load  # noqa: E402

OPENED = "const n = performance.getEntriesByType('navigation')[0]; return [n.domInteractive, n.loadEventEnd]"
PICTURED = "return Number(document.documentElement.dataset.pictured || 0)"


def main() -> int:
    """Make a run up, draw it, open it several times, and print what that took."""
    parser = argparse.ArgumentParser(
        description="How fast a report of many variants opens in headless Chromium."
    )
    parser.add_argument("--variants", type=int, default=500)
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400, help="timed steps of each launch and rank")
    parser.add_argument("--times", type=int, default=7, help="browsers, one after the other")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = made_up.many_variants(
            Path(temporary, "many"), options.variants, count=options.launches, steps=options.steps
        )
        started = time.perf_counter()
        stored = load(folder)
        loaded = time.perf_counter()
        report = write([stored])
        drawn = time.perf_counter()
        steps = sum(len(rank) for record in stored.records for rank in record.step_seconds)
        print(f"{options.variants} variants, {len(stored.records)} launches, {steps} steps")
        print(
            f"read in {loaded - started:.1f} s, drawn in {drawn - loaded:.1f} s, {report.stat().st_size / 1e6:.1f} MB"
        )
        interactive, opened, pictured, busy = [], [], [], []
        for _ in range(options.times):
            with chromium.browser() as page:
                page.command("Performance.enable", timeDomain="threadTicks")
                page.open(report)
                metrics = page.command("Performance.getMetrics")["metrics"]
                busy.append(next(m["value"] for m in metrics if m["name"] == "ThreadTime"))
                first, last = page.run(OPENED)
                interactive.append(first / 1e3)
                opened.append(last / 1e3)
                began = page.run("return performance.now()")
                page.run("document.querySelector('.plot').scrollIntoView()")
                pictured.append((page.until(PICTURED) - began) / 1e3)
        for name, values in (
            ("text and tables are there after", interactive),
            ("opened after", opened),
            ("CPU time of the page's thread until then", busy),
            ("first picture, from the moment that it is looked for, after", pictured),
        ):
            print(
                f"{name} {statistics.median(values):.2f} s (longest {max(values):.2f} s, {len(values)} fresh browsers)"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
