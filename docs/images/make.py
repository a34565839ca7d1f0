"""Makes the pictures of this folder: ``python docs/images/make.py``, with constraints-dev.txt's packages and Chromium.

``report-pass.png``, ``report-comparison.png`` and ``report-stacks.png`` are drawn from runs that were measured
(docs/measurements; the last is a stack against itself with 2 % more device time planted on one side);
``report-fail.png`` and ``report-phone.png`` from a run that was made up (tests/perf/report/helpers/made_up.py), since a
failing one was not kept.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "perf" / "report" / "helpers")]

import chromium  # noqa: E402
import made_up  # noqa: E402

from perf.report.page import write  # noqa: E402
from perf.report.stored import load  # noqa: E402

HERE = Path(__file__).parent
MEASURED = [ROOT / "docs" / "measurements" / name for name in ("2026-11-28-h100", "2026-11-28-h100-whole")]
STACKS = ROOT / "docs" / "measurements" / "2026-11-28-h200" / "planted-2-percent"


def judged(run: Path, results: Path) -> Path:
    """Judge the stored launches of a comparison again, and return the new run's folder."""
    words = ["perf/test_compare.py", "-k", "step_takes", "--profile=compare-full", "--margin=2%"]
    # Status 1: the planted slowdown fails.
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words, f"--records={run}", f"--results={results}"],
        cwd=ROOT,
        check=False,
        stdout=subprocess.DEVNULL,
    )
    return (results / "latest").resolve()


def main() -> int:
    """Draw the reports, open them, and keep what the windows show."""
    reason = chromium.missing()
    if reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as temporary, chromium.browser() as page:
        folder = Path(temporary)
        old, new = (load(path) for path in MEASURED)
        passing = write([new], folder / "pass.html")
        comparison = write([old, new], folder / "comparison.html")
        stacks = judged(STACKS, folder / "results") / "report.html"
        failing = write([load(made_up.failing_run(folder / "20261127T101500Z-madeup"))])
        for name, report, section, size in (
            ("report-pass", passing, "#answer", (1100, 1000)),
            ("report-pictures", passing, "#loader", (1100, 1000)),
            ("report-fail", failing, "#answer", (1100, 1450)),
            ("report-comparison", comparison, "#runs", (1100, 900)),
            ("report-stacks", stacks, "#stacks", (1100, 900)),
            ("report-phone", failing, "#scaling", (390, 844)),
        ):
            dark = name in ("report-phone", "report-pictures")
            page.open(report, width=size[0], height=size[1], scheme="dark" if dark else "light")
            page.draw(section)
            # Neighbours that are in the window too.
            page.until("return ![...document.querySelectorAll('.plot')].some(p => p.dataset.drawn === 'now')")
            page.picture(HERE / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
