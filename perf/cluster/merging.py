"""Add what jobs have measured and judged to their run. The submitter alone writes the run's files."""

from __future__ import annotations

import dataclasses
import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path

from perf import contract, records
from perf.cluster.folders import JobFolder
from perf.report.lines import profile_place
from perf.report.stored import NoRun, StoredRun, load
from perf.report.text import clean

JUNIT = "junit.xml"


def merge_jobs(run: records.Run, folders: Sequence[JobFolder], facts: dict[str, object]) -> list[str]:
    """Write the run's records, verdicts, environment and JUnit file from those of its jobs.

    Whole files are written anew, so that merging twice, or again after more jobs have ended, gives the same.

    Parameters
    ----------
    run
        The run.
    folders
        Its jobs, in any order; those that have left nothing are passed over.
    facts
        What ``environment.json`` says beside the jobs' own.

    Returns
    -------
    list of str
        A sentence for each thing that could not be read.
    """
    notes: list[str] = []
    stored: list[StoredRun] = []
    for folder in folders:
        try:
            stored.append(load(folder.path))
        except (NoRun, OSError):
            continue
    launches = [_adopted(run, one, record) for one in stored for record in one.records]
    launches.sort(key=lambda record: record.started_at)
    verdicts = [dataclasses.replace(v, run=run.name) for one in stored for v in one.verdicts]
    _write_lines(run.folder / records.RECORDS, launches)
    _write_lines(run.folder / records.VERDICTS, verdicts)
    notes += [f"{one.folder.name}: {note}" for one in stored for note in one.notes]
    environment = next((one.environment for one in stored if one.environment), {})
    run.write_environment({**environment, "run": run.name, **facts})
    notes += merge_junit([folder.path / JUNIT for folder in folders], run.folder / JUNIT)
    return notes


def _adopted(run: records.Run, job: StoredRun, record: contract.LaunchRecord) -> contract.LaunchRecord:
    """Return a launch as the run's own, its line profiles copied; names of launches begin with their job's."""
    kept = []
    for name in record.line_profiles:
        source = profile_place(name, record.launch, job.folder)
        target = run.profile_folder() / source.name
        if source.is_file():
            shutil.copyfile(source, target)
            name = str(target.relative_to(run.folder))  # noqa: PLW2901
        kept.append(name)
    return dataclasses.replace(record, run=run.name, line_profiles=kept)


def _write_lines(path: Path, messages: Iterable[object]) -> None:
    contract.write_whole(str(path), "".join(f"{contract.encode(message)}\n" for message in messages))


def merge_junit(sources: Sequence[Path], target: Path) -> list[str]:
    """Put the test suites of several JUnit files into one. Returns sentences about those that can't be read."""
    root = ET.Element("testsuites", name="stackproof")
    notes = []
    for source in sources:
        try:
            # Written by our own pytest in the job; the expat that parses it refuses entity floods since 2.4.
            tree = ET.parse(source)  # noqa: S314
        except FileNotFoundError:
            continue
        except (ET.ParseError, OSError) as error:
            notes.append(f"{source.parent.name}: {JUNIT} can't be read: {clean(str(error))}")
            continue
        suites = [tree.getroot()] if tree.getroot().tag == "testsuite" else list(tree.getroot())
        for suite in suites:
            suite.set("name", source.parent.name)
            root.append(suite)
    contract.write_whole(str(target), ET.tostring(root, encoding="unicode", xml_declaration=True))
    return notes


def job_environment_facts(folder: JobFolder) -> dict[str, object]:
    """Return what a job's environment.json says of where it ran: host and number of nodes."""
    try:
        found = json.loads((folder.path / records.ENVIRONMENT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: found[key] for key in ("host", "nodes") if key in found} if isinstance(found, dict) else {}
