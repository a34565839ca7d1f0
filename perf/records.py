"""The files of a run: one folder, whole lines, readable at any moment.

``results/<run>/`` holds ``environment.json``, ``records.jsonl`` (one launch a line), ``verdicts.jsonl`` (one judgement
a line), ``tests.jsonl`` (one test's outcome a line), ``explanations.jsonl`` (why a comparison moved, one a line),
``events.jsonl`` (what is going on, for whoever draws progress) and folders for launches and profiles.
Lines are appended whole, under a lock, and synced: a run that is killed keeps every launch it had finished.
"""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import functools
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from perf import contract

RECORDS = "records.jsonl"
VERDICTS = "verdicts.jsonl"
EVENTS = "events.jsonl"
TESTS = "tests.jsonl"
EXPLANATIONS = "explanations.jsonl"
ENVIRONMENT = "environment.json"
LATEST = "latest"

T = TypeVar("T")


@dataclass(frozen=True)
class VerdictRecord:
    """One judgement: a line of ``verdicts.jsonl``.

    `estimate`, `low`, `high` and `limit` are in `unit`; null where the judgement had nothing to estimate.
    `variant` is the judged member, `against` the other side where there is one. `launches` counts a side.
    `detectable` is the relative change that this measurement would have seen with 95 % power.
    `expected` says why it was known to fail; empty where it was not. `diagnosis` is filled for a `fail`: `text` (one
    paragraph), `phase`, `rank`, `host`, `differs`, `rate` and `profiles` (`perf.verdict.diagnosis`).
    `expected` says why it was known to fail; empty where it was not. `reference` is the median of the reference that
    the limit was made of, in `unit`; null where there was none.
    """

    run: str
    test: str
    group: str
    variant: str
    against: str
    metric: str
    unit: str
    estimate: float | None
    low: float | None
    high: float | None
    limit: float | None
    verdict: str
    launches: int
    detectable: float | None
    reasons: list[str] = field(default_factory=list)
    statistical: bool = True
    expected: str = ""
    diagnosis: dict[str, Any] = field(default_factory=dict)
    reference: float | None = None
    schema: int = contract.SCHEMA


@dataclass(frozen=True)
class OutcomeRecord:
    """What became of one test: a line of ``tests.jsonl``. Exact facts leave no judgement, so a report needs these.

    `outcome` is pytest's: ``passed``, ``failed`` or ``skipped``. `verdict` is what the suite made of it where that is
    not the same: ``inconclusive``, ``invalid``, ``unreferenced`` or ``infrastructure``; else empty. `text` says why, in
    the words of pytest's own report. `seconds` is the time of the test, in which its group may have been measured.
    """

    test: str
    outcome: str
    verdict: str
    seconds: float
    text: str
    schema: int = contract.SCHEMA


@dataclass(frozen=True)
class ExplanationRecord:
    """Why a comparison of two stacks moved: a line of ``explanations.jsonl``.

    `sentences` say it in words. The rest is what they rest on, old side first: `phases` and `operators` hold seconds a
    step (operators with calls a step behind them), `rates` what the machine did by itself, null where a side has none,
    `settings` what is in force on one side and not on the other.
    """

    run: str
    test: str
    group: str
    variant: str
    metric: str
    sentences: list[str]
    phases: dict[str, list[float]] = field(default_factory=dict)
    operators: dict[str, list[float]] = field(default_factory=dict)
    rates: dict[str, list[float | None]] = field(default_factory=dict)
    settings: dict[str, list[str]] = field(default_factory=dict)
    schema: int = contract.SCHEMA


@dataclass(frozen=True)
class Event:
    """Something that happened while a run was measured: a line of ``events.jsonl``.

    `kind` is one of ``planned`` (a group: `total` launches), ``start`` and ``done`` (one launch), ``failed`` (a launch
    that gave no record), ``extend`` (a look asked for more launches, or one was taken again because the machine was not
    fit) and ``note`` (a sentence). `failure` says of a ``failed`` launch which rank failed first and how
    (`perf.launch.failure.facts`), where that is known.
    """

    kind: str
    time: float
    group: str = ""
    member: str = ""
    launch: str = ""
    number: int = 0
    total: int = 0
    text: str = ""
    worker: str = ""
    failure: dict[str, Any] = field(default_factory=dict)
    schema: int = contract.SCHEMA


def new_run_name(now: datetime.datetime | None = None) -> str:
    """Return a run's name: UTC time and a short random part, so that two people's runs never share a folder."""
    moment = (now or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


@dataclass(frozen=True)
class Run:
    """The folder of one run, or of one of its jobs: `part_of` then names the run."""

    folder: Path
    part_of: str = ""

    @property
    def name(self) -> str:
        """The run's name, which is its folder's."""
        return self.part_of or self.folder.name

    @classmethod
    def create(cls, results: Path, name: str | None = None) -> Run:
        """Make a new run's folder below `results` and point ``latest`` at it."""
        run = cls(results / (name or new_run_name()))
        run.folder.mkdir(parents=True, exist_ok=True)
        _point(results / LATEST, run.folder.name)
        return run

    def launch_folder(self, launch: str) -> Path:
        """Return the folder of one launch (spec, rank records, logs), made if need be."""
        folder = self.folder / "launches" / launch
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def profile_folder(self) -> Path:
        """Return the folder for line profiles and traces, made if need be."""
        folder = self.folder / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def append(self, file: str, message: Any) -> None:
        """Append one record to `file` as one line."""
        append_line(self.folder / file, contract.encode(message))

    def records(self) -> list[contract.LaunchRecord]:
        """Read every launch of this run, in the order in which the launches ended."""
        return read_lines(self.folder / RECORDS, contract.LaunchRecord)

    def verdicts(self) -> list[VerdictRecord]:
        """Read every judgement of this run."""
        return read_lines(self.folder / VERDICTS, VerdictRecord)

    def write_environment(self, environment: dict[str, Any]) -> None:
        """Write ``environment.json``."""
        text = json.dumps(environment, indent=2, sort_keys=True, allow_nan=False) + "\n"
        contract.write_whole(str(self.folder / ENVIRONMENT), text)


def append_line(path: Path, line: str) -> None:
    """Append one line, whole or not at all, and sync it.

    Several processes of one node may append to one file (xdist workers do), so the file is locked meanwhile. Nodes
    never share a file.
    """
    if "\n" in line:
        raise ValueError("a record is one line; it must not hold a line feed")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        start = os.lseek(handle, 0, os.SEEK_END)
        data = line.encode() + b"\n"
        if start and os.pread(handle, 1, start - 1) != b"\n":
            # A writer was killed inside its line: close that line, so that only the broken one is lost.
            data = b"\n" + data
        try:
            written = os.write(handle, data)
            if written != len(data):
                raise OSError(
                    f"{path}: only {written} of {len(data)} bytes could be written; is the disk full?"
                )
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, start)
            raise
    finally:
        os.close(handle)


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """Read a file of records.

    Raises
    ------
    contract.ContractError
        With file and line, if a line does not hold a whole record of `kind`.
    FileNotFoundError
        If there is no such file.
    """
    # Bytes, split at line feeds alone: text would end a line at eleven other characters too, and one line that is no
    # UTF-8 would be an error without a number.
    return [
        decode_line(kind, line, f"{path}:{number}")
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1)
        if line.strip()
    ]


def decode_line(kind: type[T], line: bytes, where: str) -> T:
    """Read one record, as `contract.decode` does and twenty times as fast; errors are that function's own.

    Raises
    ------
    contract.ContractError
        As `contract.decode`.
    """
    try:
        raw = msgspec.json.decode(line)
        if isinstance(raw, dict) and raw.get("schema") == contract.SCHEMA and _knows_all_keys(kind, raw):
            return msgspec.convert(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Whatever is wrong, the other reader says it with its place.
        pass
    return contract.decode(kind, line, where)


def _knows_all_keys(kind: Any, raw: dict[str, Any]) -> bool:
    """Say whether a record and the epochs inside it have no key that the contract lacks, which msgspec would drop."""
    epochs = raw.get("epochs")
    inner = (
        [e for rank in epochs for e in (rank if isinstance(rank, list) else [rank])]
        if isinstance(epochs, list)
        else []
    )
    return raw.keys() <= _names(kind) and all(
        isinstance(epoch, dict) and epoch.keys() <= _names(contract.EpochRecord) for epoch in inner
    )


@functools.cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(kind))


def _point(link: Path, target: str) -> None:
    """Let `link` name `target`, by rename, also while another run does the same."""
    if link.exists() and not link.is_symlink():
        raise FileExistsError(
            f"{link} should be a link to the newest run, but is something else; move it away"
        )
    temporary = link.with_name(f".{link.name}-{secrets.token_hex(4)}")
    temporary.symlink_to(target)
    temporary.replace(link)
