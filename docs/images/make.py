"""Makes the pictures of this folder: ``python docs/images/make.py``, with constraints-dev.txt's packages and Chromium.

``report-pass.png`` and ``report-comparison.png`` are drawn from runs that were measured (docs/measurements);
``report-fail.png`` and ``report-phone.png`` from a run that was made up (tests/perf/report/helpers/made_up.py), since a
failing one was not kept.
"""

from __future__ import annotations

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
        failing = write([load(made_up.failing_run(folder / "20261127T101500Z-madeup"))])
        for name, report, section, size in (
            ("report-pass", passing, "#answer", (1100, 1000)),
            ("report-pictures", passing, "#loader", (1100, 1000)),
            ("report-fail", failing, "#answer", (1100, 1450)),
            ("report-comparison", comparison, "#runs", (1100, 900)),
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
