"""``python -m perf.report history DIR… [--csv FILE]``: months of runs in one page, with nominated change points."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perf.report.figures.model import Section, Table
from perf.report.history.csvfile import CsvError, read_csv
from perf.report.history.figures import history_sections
from perf.report.history.nominations import Day, days_of, nominate
from perf.report.history.observations import Observation, series_of
from perf.report.history.runs import find_runs, read_run
from perf.report.output import write_named
from perf.report.text import clean, fit, number, out_of_reach

__all__ = ["History", "gather_history", "main"]

PAGE = "history.html"

MOST_NOTES = 50
"""Of what could not be read; the rest is counted."""


@dataclass(frozen=True)
class History:
    """What the page holds."""

    sentence: str
    header: list[str]
    days: list[Day]
    tables: list[Table]
    sections: list[Section]
    notes: list[str] = field(default_factory=list)


def gather_history(observations: Sequence[Observation], notes: Sequence[str] = ()) -> History:
    """Put together what the page holds. Pure."""
    series = series_of(observations)
    nominated = nominate(series)
    days = days_of(nominated, series)
    runs = len({one.run for one in observations})
    systems = sorted({one.system for one in observations})
    variants = len({(one.system, one.variant) for one in observations})
    sentence = f"{len(days)} day{'' if len(days) == 1 else 's'} nominated" if days else "Nothing is nominated"
    told = [clean(note) for note in notes[:MOST_NOTES]]
    if len(notes) > MOST_NOTES:
        told.append(f"and {len(notes) - MOST_NOTES} more")
    return History(
        sentence=sentence,
        header=[
            f"{len(observations)} results of {variants} variants in {runs} run{'' if runs == 1 else 's'} or files",
            *(clean(f"system: {system}") for system in systems),
        ],
        days=days,
        tables=[_table(day) for day in days],
        sections=history_sections(series, nominated),
        notes=told,
    )


def _table(day: Day) -> Table:
    rows: list[tuple[str, ...]] = [
        (
            one.series.quantity.title,
            clean(one.series.variant),
            number(one.series.values[one.nomination.place]),
            one.series.quantity.told(one.nomination.change),
            one.nomination.rule,
            clean(one.series.observations[one.nomination.place].run),
        )
        for one in day.nominated
    ]
    note = (
        "level: this and the two results behind it lie beyond 2.5 robust standard deviations of those before. "
        "incident: off both neighbours, in several variants on one day; the change is the smaller one."
    )
    return Table(("quantity", "variant", "value", "change", "rule", "run"), rows, frozenset((2, 3)), note)


def main(words: Sequence[str]) -> int:
    """Read, draw, and print what was nominated; returns the exit status: 0, 1 (not written), 2 (not readable)."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.report history",
        description="Draw throughput, efficiency and loader share of months of runs, and nominate change points. "
        "One file that loads nothing. It nominates; `nox -s compare` decides.",
    )
    parser.add_argument(
        "folders", type=Path, nargs="*", metavar="DIR", help="a run, or a folder of runs (results)"
    )
    parser.add_argument(
        "--csv",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="results of others: benchmark,framework,system,gpus,date,images_per_s",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"where to write (default: {PAGE} in the first DIR, or here)",
    )
    options = parser.parse_args(words)
    if not options.folders and not options.csv:
        parser.error("name a folder of runs, or --csv FILE")
    try:
        # Ten thousand runs are a million objects, none of them garbage: looking for it takes time for nothing.
        gc.disable()
        observations, notes = _read(options.folders, options.csv)
    except CsvError as error:
        return _complain(str(error), 2)
    except OSError as error:
        return _complain(out_of_reach(error.filename, error, "read"), 2)
    finally:
        gc.enable()
    if not observations:
        return _complain("no launch of these runs says how fast a variant trains", 2)
    history = gather_history(observations, notes)
    path = options.output or (options.folders[0] if options.folders else Path()) / PAGE
    from perf.report.page import render
    from perf.report.plotly import NoPlotly

    try:
        pictures = [figure for section in history.sections for figure in section.figures]
        write_named(path, render("history.html.j2", pictures, history=history))
    except NoPlotly as error:
        return _complain(str(error), 1)
    except OSError as error:
        return _complain(out_of_reach(path, error), 1)
    for day in history.days:
        print(fit(f"{day.day}  {day.system}: {day.sentence}", sys.stdout.encoding))
    print(fit(f"{history.sentence}; history: {path}", sys.stdout.encoding))
    return 0


def _read(folders: Sequence[Path], tables: Sequence[Path]) -> tuple[list[Observation], list[str]]:
    notes: list[str] = []
    found = [one for run in find_runs(folders) for one in read_run(run, notes)]
    for path in tables:
        more, complaints = read_csv(path)
        found += more
        notes += complaints
    return found, notes


def _complain(text: str, status: int) -> int:
    print(f"error: {fit(text, sys.stderr.encoding)}", file=sys.stderr)
    return status
