"""Print the tables of a stored run again: ``python -m perf.report RUN``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from perf.portable import systems_to_show
from perf.report.lines import ProfileError, launch_profiles, render
from perf.report.stored import NoRun, StoredRun, load
from perf.report.summary import Summary, environment_lines, summarize
from perf.report.tables import print_report
from perf.report.text import fit

JSON_SCHEMA = 1
"""Raised when a key of ``--json`` changes its meaning or goes away."""

_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a run's report; return 0, or 2 where the path is no run or a line profile that was asked for is missing."""
    options = _parser().parse_args(arguments)
    try:
        stored = load(options.run)
    except (NoRun, OSError) as error:
        print(f"error: {fit(str(error), sys.stderr.encoding)}", file=sys.stderr)
        return _USAGE
    known, notes = systems_to_show()
    stored = dataclasses.replace(stored, notes=[*stored.notes, *notes])
    summary = summarize(stored.records, stored.verdicts, known)
    if options.json:
        # ASCII, so that any locale can write it.
        print(json.dumps(as_json(stored, summary), indent=2, allow_nan=False))
        return 0
    console = Console(highlight=False)
    environment = environment_lines(stored.environment)
    print_report(console, summary, environment=environment, folder=stored.folder, notes=stored.notes)
    return _print_profiles(console, stored) if options.lines else 0


def as_json(stored: StoredRun, summary: Summary) -> dict[str, Any]:
    """Return what ``--json`` prints: the rows and the account, the environment and the notes; times in seconds."""
    account = dataclasses.asdict(summary.account) | {"too_many": summary.account.too_many}
    content = {
        "schema": JSON_SCHEMA,
        "run": stored.folder.name,
        "folder": str(stored.folder),
        "environment": stored.environment,
        "data": summary.data,
        "variants": [dataclasses.asdict(row) for row in summary.variants],
        "rates": [dataclasses.asdict(row) for row in summary.rates],
        "fractions": [dataclasses.asdict(row) for row in summary.fractions],
        "verdicts": [dataclasses.asdict(row) for row in summary.verdicts],
        "account": account,
        "notes": stored.notes,
    }
    finite: dict[str, Any] = _finite(content)
    return finite


def _print_profiles(console: Console, stored: StoredRun) -> int:
    profiled = [record for record in stored.records if record.line_profiles]
    if not profiled:
        print("error: no launch of this run has a line profile; measure with --line-profile", file=sys.stderr)
        return _USAGE
    status = 0
    for record in profiled:
        try:
            text = render(launch_profiles(record, stored.folder))
        except ProfileError as error:
            print(f"error: {fit(str(error), sys.stderr.encoding)}", file=sys.stderr)
            status = _USAGE
            continue
        heading = f"\nLine profile of {record.variant}, launch {record.launch}\n"
        console.print(Text(fit(heading + text, console.encoding, keep_lines=True)), soft_wrap=True)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.report", description="Print the tables of a stored run again."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as results/latest")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the summary as JSON, for scripts")
    output.add_argument("--lines", action="store_true", help="print the line profiles too")
    return parser


def _finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have but Python reads, by null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    sys.exit(main())
