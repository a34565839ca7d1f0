"""Where references come from: the folder of reference files, and the system that a run was on."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path

from perf.catalogue import GROUPS
from perf.report.stored import StoredRun
from perf.suite.floors import date_of
from perf.tomlfile import nearest
from perf.variants import Variant, VariantError
from perf.verdict.known import Library
from perf.verdict.references import ReferenceFile, read
from perf.verdict.system import system_of

__all__ = ["complaint", "library_of", "read_references", "today"]

PLANS = ("window", "epochs", "solution", "audit", "rates")


def complaint(variant: str) -> str | None:
    """Say what is wrong with the name of a variant in a reference file; None if nothing is."""
    name, plus, plan = variant.partition("+")
    try:
        Variant.parse(name)
    except VariantError as error:
        known = {member.id for group in GROUPS.values() for member in group.members}
        hint = nearest(variant, known)
        return str(error) + ("" if hint == "it is not known" else f"; {hint}")
    if plus and (plan not in PLANS or plan == "window"):
        return f"{plan!r} after the plus sign is no plan; {nearest(plan, PLANS[1:])}"
    return None


def read_references(folder: Path) -> list[ReferenceFile]:
    """Read every reference file of a folder, in the order of their names. Reads files.

    Raises
    ------
    TomlError
        If one can't be used.
    """
    return [read(path, complaint) for path in sorted(folder.glob("*.toml"))]


def today() -> str:
    """Return today's date in UTC, as ISO text. Reads the clock."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def library_of(
    runs: Sequence[StoredRun], files: Sequence[ReferenceFile], say: Callable[[str], None]
) -> Library:
    """Return what is known of the system of stored runs, on the date of their newest launch.

    Runs of several systems are held against nothing: which of them would a reference be for?
    """
    systems = {system_of(run.environment) for run in runs}
    dates = [date_of(launch) for run in runs for launch in run.records]
    if len(systems) > 1:
        words = "; ".join(sorted(system.words for system in systems))
        say(f"the stored runs come from different systems ({words}): no reference is held against them")
        files = []
    library = Library(files, system_of(runs[0].environment), max(dates, default=today()))
    for line in library.lines:
        say(line)
    return library
