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
    launches: list[tuple[float, bytes]] = []
    verdicts: list[bytes] = []
    for folder in folders:
        for line, head in read_heads(folder.path / records.RECORDS, notes):
            launches.append((head.started_at, _adopted(run, folder.path, line, head)))
        for line, head in read_heads(folder.path / records.VERDICTS, notes):
            verdicts.append(line if head.run == run.name else _changed(line, run=run.name))
    launches.sort(key=lambda launch: launch[0])
    _write_lines(run.folder / records.RECORDS, [line for _, line in launches])
    _write_lines(run.folder / records.VERDICTS, verdicts)
    # Which test ended how, and which launch failed, is the report's; a job's names are unique in its run.
    for name in (records.TESTS, records.EVENTS, records.EXPLANATIONS):
        found = [line for folder in folders for line, _ in read_heads(folder.path / name, notes)]
        if found:
            _write_lines(run.folder / name, found)
    environments = (environment_of(folder) for folder in folders)
    run.write_environment({**next((e for e in environments if e), {}), "run": run.name, **facts})
    notes += merge_junit([folder.path / JUNIT for folder in folders], run.folder / JUNIT)
    return notes


class Head(msgspec.Struct, frozen=True):
    """What merging has to know of a line. The rest of it is checked by whoever judges or reports, as ever.

    A hundred jobs leave thousands of records; building all of each only to write it again would take minutes.
    """

    run: str = ""
    launch: str = ""
    started_at: float = 0.0
    line_profiles: list[str] = []
    traces: list[str] = []


def read_heads(path: Path, notes: list[str]) -> list[tuple[bytes, Head]]:
    """Return the lines of a file with what merging has to know of them; a broken line is named in `notes`."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            # What is skipped is not looked at, and a line that is no text can't be written.
            line.decode()
            found.append((line, msgspec.json.decode(line, type=Head)))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            place = f"{path.parent.name}/{path.name}:{number}"
            notes.append(f"{place}: left out, the line was cut short or overwritten: {clean(str(error))}")
    return found


def _adopted(run: records.Run, job: Path, line: bytes, head: Head) -> bytes:
    """Return a launch's line as the run's own, its profiles copied; names of launches begin with their job's."""
    if head.run == run.name and not head.line_profiles and not head.traces:
        return line

    def copied(name: str) -> str:
        source = profile_place(name, head.launch, job)
        target = run.profile_folder() / source.name
        if not source.is_file():
            return name
        shutil.copyfile(source, target)
        return str(target.relative_to(run.folder))

    # A line from before there were traces stays without the key.
    traces = {"traces": [copied(name) for name in head.traces]} if head.traces else {}
    return _changed(line, run=run.name, line_profiles=[copied(name) for name in head.line_profiles], **traces)


def _changed(line: bytes, **values: object) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(line, type=dict[str, Any]), **values})


def _write_lines(path: Path, lines: Iterable[bytes]) -> None:
    contract.write_whole(str(path), "".join(f"{line.decode()}\n" for line in lines))


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
