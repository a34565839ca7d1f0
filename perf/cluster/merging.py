"""Add what jobs have measured and judged to their run. The submitter alone writes the run's files."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from perf import contract, records
from perf.cluster.folders import JobFolder
from perf.report.lines import profile_place
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
    launches: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    for folder in folders:
        found = read_objects(folder.path / records.RECORDS, notes)
        launches += [_adopted(run, folder.path, record) for record in found]
        verdicts += [
            {**verdict, "run": run.name} for verdict in read_objects(folder.path / records.VERDICTS, notes)
        ]
    launches.sort(key=_started_at)
    _write_lines(run.folder / records.RECORDS, launches)
    _write_lines(run.folder / records.VERDICTS, verdicts)
    environments = (environment_of(folder) for folder in folders)
    run.write_environment({**next((e for e in environments if e), {}), "run": run.name, **facts})
    notes += merge_junit([folder.path / JUNIT for folder in folders], run.folder / JUNIT)
    return notes


def read_objects(path: Path, notes: list[str]) -> list[dict[str, Any]]:
    """Return the JSON objects of a file of lines; a line that is none is named in `notes` and left out.

    Only that much is checked here: whoever judges or reports reads each record by the contract, as ever. A hundred jobs
    leave thousands of records, and checking each twice would take minutes.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=dict[str, Any]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            place = f"{path.parent.name}/{path.name}:{number}"
            notes.append(f"{place}: left out, the line was cut short or overwritten: {clean(str(error))}")
    return found


def _adopted(run: records.Run, job: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Return a launch as the run's own, its line profiles copied; names of launches begin with their job's."""
    kept = []
    names = record.get("line_profiles")
    for name in names if isinstance(names, list) else []:
        source = profile_place(str(name), str(record.get("launch")), job)
        target = run.profile_folder() / source.name
        if source.is_file():
            shutil.copyfile(source, target)
            name = str(target.relative_to(run.folder))  # noqa: PLW2901
        kept.append(name)
    return {**record, "run": run.name, "line_profiles": kept}


def _started_at(record: dict[str, Any]) -> float:
    value = record.get("started_at")
    return float(value) if isinstance(value, (int, float)) else 0.0


def _write_lines(path: Path, messages: Iterable[dict[str, Any]]) -> None:
    encoder = msgspec.json.Encoder()
    contract.write_whole(str(path), "".join(encoder.encode(message).decode() + "\n" for message in messages))


def environment_of(folder: JobFolder) -> dict[str, Any]:
    """Return what a job's environment.json says; nothing where there is none."""
    try:
        found = json.loads((folder.path / records.ENVIRONMENT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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
    found = environment_of(folder)
    return {key: found[key] for key in ("host", "nodes") if key in found}
