"""Reading a stored run for a report: all that can be read, and a sentence for what can't."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from perf import contract
from perf.records import (
    ENVIRONMENT,
    EVENTS,
    EXPLANATIONS,
    RECORDS,
    TESTS,
    VERDICTS,
    Event,
    ExplanationRecord,
    OutcomeRecord,
    VerdictRecord,
    decode_line,
)

__all__ = ["NoRun", "StoredRun", "load"]

T = TypeVar("T")


class NoRun(ValueError):
    """A path that is no run's folder. The message says what is there and what was expected."""


@dataclass(frozen=True)
class StoredRun:
    """What a run's folder holds. `notes` are sentences about what could not be read."""

    folder: Path
    environment: dict[str, Any] = field(default_factory=dict)
    records: list[contract.LaunchRecord] = field(default_factory=list)
    verdicts: list[VerdictRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    outcomes: list[OutcomeRecord] = field(default_factory=list)
    explanations: list[ExplanationRecord] = field(default_factory=list)


def load(folder: Path) -> StoredRun:
    """Read a run's folder, or what ``latest`` points at.

    A run that was killed may have no judgements yet, or a line that was cut short: such a line is left out and named
    in the notes, and the report shows the rest.

    Raises
    ------
    NoRun
        If there is no such folder, or none of a run's files in it.
    OSError
        If a file is there and can't be read.
    """
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        if folder.is_symlink() and not folder.exists():
            what = f"points at {folder.readlink()}, which is gone"
        raise NoRun(f"{folder} {what}; name the folder of a run, such as results/latest")
    if not any((folder / name).is_file() for name in (RECORDS, VERDICTS, ENVIRONMENT, EVENTS)):
        inner = sorted(
            path.name
            for path in folder.iterdir()
            if (path / ENVIRONMENT).is_file() or (path / RECORDS).is_file()
        )
        hint = (
            f"it holds runs, name one of them, such as {folder / inner[-1]}"
            if inner
            else "name the folder of a run"
        )
        raise NoRun(
            f"{folder} is no run: none of {RECORDS}, {VERDICTS}, {ENVIRONMENT} and {EVENTS} is in it; {hint}"
        )
    resolved = folder.resolve()
    notes: list[str] = []
    return StoredRun(
        resolved,
        _environment(resolved / ENVIRONMENT, notes),
        _lines(resolved / RECORDS, contract.LaunchRecord, notes),
        _lines(resolved / VERDICTS, VerdictRecord, notes),
        notes,
        _lines(resolved / EVENTS, Event, notes),
        _lines(resolved / TESTS, OutcomeRecord, notes),
        _lines(resolved / EXPLANATIONS, ExplanationRecord, notes),
    )


def _lines(path: Path, kind: type[T], notes: list[str]) -> list[T]:
    if not path.is_file():
        return []
    read = []
    # Bytes: one line that is no UTF-8 must not hide the others.
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            read.append(decode_line(kind, line, f"{path}:{number}"))
        except (contract.ContractError, UnicodeDecodeError, RecursionError) as error:
            reason = str(error) if isinstance(error, contract.ContractError) else f"{path}:{number}: {error}"
            notes.append(f"left out: {reason}")
    return read


def _environment(path: Path, notes: list[str]) -> dict[str, Any]:
    if not path.is_file():
        notes.append(f"{path} is missing: the report can't say where the run was made")
        return {}
    try:
        environment = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        notes.append(f"left out: {path}: not readable as JSON ({error})")
        return {}
    if not isinstance(environment, dict):
        notes.append(f"left out: {path}: expected a JSON object, found {type(environment).__name__}")
        return {}
    return environment
