"""Write what a system is known to do: ``python -m perf.calibration [RUN ...]``, the command under ``nox -s calibrate``.

Without a RUN it measures first: `--launches` launches of every variant of a floor, all of one stack (A/A). Then it
shows how much the launches spread, what a comparison of equal stacks would have said of them, and how the reference
file would change. It writes when told to.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perf import contract
from perf.calibration.occasions import LeftOut, New, new_occasions
from perf.calibration.table import spread_lines
from perf.calibration.writing import MarginTooSmall, new_file, with_occasions
from perf.ending import finish
from perf.machine import REPOSITORY
from perf.report.stored import NoRun, StoredRun, load
from perf.report.text import fit
from perf.suite.library import complaint, read_references
from perf.tomlfile import TomlError
from perf.verdict.references import ReferenceFile, parse
from perf.verdict.system import System, system_of
from perf.whole import AMOUNT

EXIT_NOT_WRITTEN = 3
EXIT_USAGE = 4

LAUNCHES = 10
"""Launches of each variant: 5 a side of the A/A, and a spread that is known to a third (upper bound 1.64 of it)."""

DAYS_VALID = 180
"""A system gets new drivers and firmware about twice a year; a reference from before them describes another one."""

MOST_DAYS = 3650
"""Ten years. No system stays the same for so long, and a calendar ends."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a new file may be called: one file's name, in the folder of references, that no shell has to quote."""

MEASURED = (0, 1, 10)
"""pytest's exit statuses after which there are launches to read: a miss or noise is no reason not to calibrate."""


@dataclass(frozen=True)
class Change:
    """How one file would change."""

    path: Path
    before: str
    after: str


class CalibrationError(ValueError):
    """A request that can't be carried out. The message says why, and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if files were written or nothing changed, 3 if nothing was written, 4 for misuse."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    mine, theirs = (
        (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    )
    options = _parser().parse_args(mine)
    try:
        # Before a measurement that may take an hour.
        _refuse_unusable(options)
        _refuse_missing(options.references)
        runs = _runs(options, theirs)
        changes = [
            change
            for change in (_change(run, options) for run in runs)
            if change is not None and change.before != change.after
        ]
    except (CalibrationError, MarginTooSmall, NoRun, TomlError, OSError) as error:
        print(f"error: {fit(str(error), sys.stderr.encoding)}", file=sys.stderr)
        return EXIT_USAGE
    if not changes:
        print("Nothing changes.")
        return 0
    for change in changes:
        print(_difference(change))
    if not (options.yes or _agreed()):
        print("Nothing was written. Give --yes to write it.")
        return EXIT_NOT_WRITTEN
    for change in changes:
        contract.write_whole(str(change.path), change.after)
        print(f"written: {change.path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="What follows after -- goes to the measuring pytest: -- --stack=PYTHON -k mnist_cnn",
    )
    add = parser.add_argument
    add(
        "runs", nargs="*", type=Path, metavar="RUN", help="take the launches of this run instead of measuring"
    )
    add("--references", type=Path, metavar="DIR", help="folder of reference files (default: perf/references)")
    add("--name", metavar="NAME", help="name of a new file, without .toml (default: made from the system)")
    add("--launches", type=int, default=LAUNCHES, metavar="N", help=f"of each variant (default: {LAUNCHES})")
    add(
        "--margin",
        type=_percentage,
        metavar="2%",
        help="smallest change that stacks are compared for; refused below three times the spread "
        "(default: 2%%, or what a variant's spread allows)",
    )
    add(
        "--days",
        type=int,
        default=DAYS_VALID,
        metavar="N",
        help=f"days until it expires (default: {DAYS_VALID})",
    )
    add(
        "--single-node",
        action="store_true",
        help="the system has one node, or nodes whose names change: another date confirms a miss",
    )
    add("--yes", action="store_true", help="write without asking")
    return parser


def _percentage(text: str) -> float:
    # With a zero before it, .5 is a number as any other.
    digits = "0" + text.strip().removesuffix("%").rstrip()
    number = float(digits) / 100.0 if re.fullmatch(AMOUNT, digits) else 0.0
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"expected a percentage such as 2%, got {text!r}")
    return number


def _runs(options: argparse.Namespace, theirs: Sequence[str]) -> list[StoredRun]:
    if options.runs:
        if theirs:
            raise CalibrationError(
                "pytest's arguments after -- are for measuring; with a RUN nothing is measured"
            )
        return [load(run) for run in options.runs]
    command = [
        *(sys.executable, "-E", "-s", "-m", "pytest", "perf", "--profile", "quick"),
        f"--launches={options.launches}",
        *(() if any(word.startswith("-k") for word in theirs) else ("-k", "floor or ceiling")),
        *theirs,
    ]
    status = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
    if status not in MEASURED:
        raise CalibrationError(f"measuring ended with status {status}: nothing is recorded from such a run")
    return [load(Path(os.path.join(REPOSITORY, _results_of(theirs), "latest")))]


def _refuse_unusable(options: argparse.Namespace) -> None:
    if options.name is not None and not NAME.fullmatch(options.name):
        raise CalibrationError(
            f"--name {options.name}: a name is letters, digits, '.', '_' and '-', and begins with a letter or a digit; "
            f"with .toml it becomes a file in the folder of references"
        )
    if options.launches < 5:
        raise CalibrationError(f"--launches {options.launches}: an occasion needs 5, and the A/A needs 10")
    if not 1 <= options.days <= MOST_DAYS:
        raise CalibrationError(f"--days {options.days}: expected 1 to {MOST_DAYS}")


def _refuse_missing(folder: Path | None) -> None:
    if folder is not None and not folder.is_dir():
        raise CalibrationError(f"{folder} is no folder; make it, or name another one with --references")


def _results_of(words: Sequence[str]) -> str:
    """Return where pytest's arguments have it keep its runs: the last that says so counts, as for pytest."""
    found = "results"
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        if word == "--results":
            found = following
        elif word.startswith("--results="):
            found = word.partition("=")[2]
    return found


def _change(run: StoredRun, options: argparse.Namespace) -> Change | None:
    """Return how a run changes its system's file; None if it adds nothing. Prints what was found."""
    folder = options.references or REPOSITORY / "perf" / "references"
    system = system_of(run.environment)
    added, left = new_occasions(run.records, run.environment)
    _tell(run, system, added, left)
    if not added:
        raise CalibrationError(f"{run.folder} has nothing to record; see above")
    path, before, known = _file(folder, system, options)
    expires = datetime.date.fromisoformat(max(one.recorded.date for one in added)) + datetime.timedelta(
        days=options.days
    )
    after = with_occasions(before, known, added, expires=expires, margin=options.margin)
    # What is written can be read: a mistake of ours is found here and not at the next run.
    parse(after, str(path), complaint)
    return Change(path, path.read_text(encoding="utf-8") if path.exists() else "", after)


def _file(folder: Path, system: System, options: argparse.Namespace) -> tuple[Path, str, ReferenceFile]:
    """Return the file of a system: the one that is of the very same system, else a new one."""
    files = read_references(folder) if folder.is_dir() else []
    known = next((file for file in files if file.system == system), None)
    if known is not None:
        path = Path(known.where)
        if options.name and path.stem != options.name:
            raise CalibrationError(f"--name {options.name}: {path} is already of this system")
        return path, path.read_text(encoding="utf-8"), known
    path = folder / f"{options.name or system.slug}.toml"
    if path.exists():
        raise CalibrationError(f"{path} is of another system ({system.words} here); give a --name")
    _refuse_missing(folder)
    text = new_file(system, single_node=options.single_node)
    return path, text, parse(text, str(path), complaint)


def _tell(run: StoredRun, system: System, added: Sequence[New], left: Sequence[LeftOut]) -> None:
    encoding = sys.stdout.encoding
    print(fit(f"{run.folder}: {system.words}", encoding))
    for note in run.notes:
        print(fit(f"note: {note}", encoding))
    for line in spread_lines(added):
        print(fit(line, encoding))
    for one in left:
        print(fit(f"left out: {one.variant} {one.why}", encoding))


def _difference(change: Change) -> str:
    lines = difflib.unified_diff(
        change.before.splitlines(),
        change.after.splitlines(),
        f"{change.path} (as it is)" if change.before else "nothing yet",
        f"{change.path} (as it would be)",
        lineterm="",
    )
    return "\n".join(fit(line, sys.stdout.encoding) for line in lines)


def _agreed() -> bool:
    """Ask whether to write, where somebody can answer."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return input("Write this? [y/N] ").strip().lower() in ("y", "yes")


if __name__ == "__main__":
    finish(main)
