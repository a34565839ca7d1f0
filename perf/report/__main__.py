"""Stored runs as tables, as a page, as JSON and as TensorBoard's files: ``python -m perf.report``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from perf.ending import finish
from perf.portable import systems_to_show
from perf.report.console import make_console
from perf.report.lines import ProfileError, launch_profiles, render
from perf.report.scripting import as_json
from perf.report.stored import NoRun, StoredRun, load
from perf.report.summary import Summary, environment_lines, summarize
from perf.report.tables import print_report
from perf.report.text import fit, out_of_reach

_USAGE = 2
_FAILED = 1

_RUN_HELP = "the run's folder, such as results/latest"

_COMMANDS_HELP = """\
commands (RUN alone prints the tables):
  html RUN [RUN ...]   one self-contained page, report.html; of several runs comparison.html
  json RUN             the run for scripts, as one JSON object
  tensorboard RUN      event files with losses, step times and throughputs
  export RUN           the run for other programs: --format json, csv or prometheus
  history DIR [DIR ...] months of runs in one page, with nominated change points; --csv FILE reads others' results

`python -m perf.report COMMAND --help` says more.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0; 2 where a path is no run or a line profile that was asked for is missing; 1 where something can't be drawn or
        written.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands: dict[str, Callable[[list[str]], int]] = {
        "html": _html,
        "json": _json,
        "tensorboard": _tensorboard,
        "export": _export,
        "history": _history,
    }
    # A run's folder that bears a command's name is still reached, as ./html.
    if words and words[0] in commands:
        return commands[words[0]](words[1:])
    return _tables(words)


def _tables(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.report",
        description="Print the tables of a stored run again.",
        epilog=_COMMANDS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="the same as the command json")
    output.add_argument("--lines", action="store_true", help="print the line profiles too")
    options = parser.parse_args(words)
    if options.json:
        return _json([str(options.run)])
    stored = _load(options.run)
    if stored is None:
        return _USAGE
    console = make_console()
    stored, summary = _summarized(stored)
    environment = environment_lines(stored.environment)
    print_report(console, summary, environment=environment, folder=stored.folder, notes=stored.notes)
    return _print_profiles(console, stored) if options.lines else 0


def _html(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.report html",
        description="Draw the report of a run, or of several runs beside each other: the first is what the others are "
        "compared with. One file that loads nothing; a run writes its own at its end.",
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write (default: report.html in the run's folder; comparison.html in the last of several)",
    )
    options = parser.parse_args(words)
    runs = [_load(folder) for folder in options.runs]
    found = [run for run in runs if run is not None]
    if len(found) < len(runs):
        return _USAGE
    from perf.report.page import write
    from perf.report.plotly import NoPlotly

    try:
        path = write(found, options.output)
    except NoPlotly as error:
        return _complain(str(error), _FAILED)
    except OSError as error:
        return _complain(out_of_reach(options.output or error.filename, error), _FAILED)
    print(fit(str(path), sys.stdout.encoding))
    return 0


def _json(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.report json", description="Print a run as one JSON object; times in seconds."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    stored = _load(parser.parse_args(words).run)
    if stored is None:
        return _USAGE
    # ASCII, so that any locale can write it.
    stored, summary = _summarized(stored)
    print(json.dumps(as_json(stored, summary), indent=2, allow_nan=False))
    return 0


def _export(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.report export",
        description="Write a run for other programs. JUnit's file lies in the run's folder already.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    parser.add_argument("--format", choices=("json", "csv", "prometheus"), default="json")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where to write (default: standard output)"
    )
    options = parser.parse_args(words)
    stored = _load(options.run)
    if stored is None:
        return _USAGE
    stored, summary = _summarized(stored)
    from perf.report.export import as_csv, as_prometheus
    from perf.report.output import write_named

    if options.format == "json":
        text = json.dumps(as_json(stored, summary), indent=2, allow_nan=False) + "\n"
    else:
        # These have no place for them, and JSON has.
        _tell(stored.notes)
        text = {"csv": as_csv, "prometheus": as_prometheus}[options.format](stored, summary)
    if options.output is None:
        # Both formats are UTF-8 whatever the locale; line ends are the format's own.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        return 0
    try:
        write_named(options.output, text)
    except OSError as error:
        return _complain(out_of_reach(options.output, error), _FAILED)
    return 0


def _history(words: list[str]) -> int:
    from perf.report.history.command import main as command

    return command(words)


def _tensorboard(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.report tensorboard",
        description="Write TensorBoard event files of a run's launches: step times, throughput, losses, epochs. "
        "`tensorboard --logdir DIR` shows them.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="where to write (default: tensorboard in the run's folder)",
    )
    options = parser.parse_args(words)
    stored = _load(options.run)
    if stored is None:
        return _USAGE
    from perf.report.tensorboard import write

    _tell(stored.notes)
    folder = options.output or stored.folder / "tensorboard"
    try:
        count = write(stored.records, folder)
    except OSError as error:
        return _complain(out_of_reach(folder, error), _FAILED)
    launches = "1 launch" if count == 1 else f"{count} launches"
    print(fit(f"{launches}: tensorboard --logdir {folder}", sys.stdout.encoding))
    return 0


def _summarized(stored: StoredRun) -> tuple[StoredRun, Summary]:
    """Return a run's rows, and the run with a note for each known system that could not be read."""
    known, notes = systems_to_show()
    return dataclasses.replace(stored, notes=[*stored.notes, *notes]), summarize(
        stored.records, stored.verdicts, known
    )


def _load(folder: Path) -> StoredRun | None:
    try:
        return load(folder)
    except NoRun as error:
        _complain(str(error), _USAGE)
    except OSError as error:
        _complain(out_of_reach(error.filename or folder, error, "read"), _USAGE)
    return None


def _tell(notes: Sequence[str]) -> None:
    """Say on standard error what could not be read, as the tables do."""
    for note in notes:
        print(f"note: {fit(note, sys.stderr.encoding)}", file=sys.stderr)


def _complain(text: str, status: int) -> int:
    print(f"error: {fit(text, sys.stderr.encoding)}", file=sys.stderr)
    return status


def _print_profiles(console: Console, stored: StoredRun) -> int:
    profiled = [record for record in stored.records if record.line_profiles]
    if not profiled:
        return _complain("no launch of this run has a line profile; measure with --line-profile", _USAGE)
    status = 0
    for record in profiled:
        try:
            text = render(launch_profiles(record, stored.folder))
        except ProfileError as error:
            status = _complain(str(error), _USAGE)
            continue
        heading = f"\nLine profile of {record.variant}, launch {record.launch}\n"
        console.print(Text(fit(heading + text, console.encoding, keep_lines=True)), soft_wrap=True)
    return status


if __name__ == "__main__":
    finish(main)
