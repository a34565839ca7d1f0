"""Stored runs as the source of a run that judges them again."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import filelock

from perf import contract, records
from perf.report.lines import profile_place
from perf.report.stored import load
from perf.suite.kept import Stored

__all__ = ["stored_again"]


def stored_again(folders: Sequence[Path], run: records.Run, note: Callable[[str], None]) -> Stored:
    """Return the launches of stored runs, and copy them into this one, which then needs the others no more.

    Parameters
    ----------
    folders
        Of the runs; the first tells where it was measured.
    run
        That judges them again.
    note
        Takes what could not be read: a line that was cut off when a run was killed costs that launch, not the run.
    """
    found = [load(folder) for folder in folders]
    for text in (text for stored in found for text in stored.notes):
        note(text)
    # xdist's workers share the run: the first one to come copies the launches into it.
    with filelock.FileLock(run.folder / f"{records.RECORDS}.lock", fallback_to_soft=False):
        if not (run.folder / records.RECORDS).exists():
            for stored in found:
                for record in stored.records:
                    run.append(records.RECORDS, _with_profiles(run, stored.folder, record))
            # What was measured elsewhere is reported with where it was measured.
            again = [str(folder) for folder in folders]
            run.write_environment({**found[0].environment, "judged_again": again})
    launches = [record for stored in found for record in stored.records]
    return Stored(launches, ", ".join(str(folder) for folder in folders))


def _with_profiles(run: records.Run, folder: Path, record: contract.LaunchRecord) -> contract.LaunchRecord:
    """Copy a stored launch's line profiles and traces into a run.

    One that is not there is left as it was recorded: printing it says what is missing.
    """

    def copied(name: str) -> str:
        source = profile_place(name, record.launch, folder)
        target = run.profile_folder() / f"{record.run}-{source.name}"
        if not source.is_file():
            return name
        shutil.copyfile(source, target)
        return str(target.relative_to(run.folder))

    return dataclasses.replace(
        record,
        line_profiles=[copied(name) for name in record.line_profiles],
        traces=[copied(name) for name in record.traces],
    )
