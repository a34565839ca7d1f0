"""What stackproof asks of a scheduler: submit, query, account, describe, cancel. Another one is another module."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SchedulerError(Exception):
    """A scheduler that refused or did not answer. The message holds its own words and the command."""


class Phase(enum.StrEnum):
    """Where a job is, in the words of all schedulers."""

    PENDING = "pending"
    RUNNING = "running"
    REQUEUED = "requeued"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether a job in it runs no more and will not start again."""
        return self not in (Phase.PENDING, Phase.RUNNING, Phase.REQUEUED, Phase.UNKNOWN)


@dataclass(frozen=True)
class Request:
    """One job to submit. `gpus` and `cores` are for each of `nodes`; `output` takes what the script prints."""

    name: str
    script: Path
    output: Path
    folder: Path
    nodes: int
    gpus: int
    cores: int
    seconds: int
    exclusive: bool
    hold_to: str = ""
    """Name of the one node that it must run on; empty for any."""


@dataclass(frozen=True)
class Seen:
    """What a scheduler says of one job.

    `word` is its own word for the state, `reason` why the job waits or ended, `nodes` where it runs, `started` since
    when (Unix time). `status` and `signal` are how its script ended, None where the scheduler does not say.
    """

    phase: Phase
    word: str
    reason: str = ""
    nodes: str = ""
    started: float | None = None
    status: int | None = None
    signal: int | None = None


@dataclass(frozen=True)
class Usage:
    """What one job used. Seconds and bytes; None where nobody knows. `source` says who measured it."""

    source: str
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    cores: int | None = None
    peak_memory_bytes: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    nodes: str = ""
    queue_seconds: float | None = None

    @property
    def cpu_efficiency(self) -> float | None:
        """CPU time over the time that all cores together had: 1 is all cores busy all the time."""
        if self.cpu_seconds is None or not self.wall_seconds or not self.cores:
            return None
        return self.cpu_seconds / (self.wall_seconds * self.cores)

    @property
    def memory_efficiency(self) -> float | None:
        """Peak memory over the memory that the job had."""
        if self.peak_memory_bytes is None or not self.memory_bytes:
            return None
        return self.peak_memory_bytes / self.memory_bytes


class Scheduler(Protocol):
    """Runs jobs. Every method runs at most one command; each may raise `SchedulerError`."""

    def submit_words(self, request: Request) -> list[str]:
        """Return the command that submits a job, for people to see. Pure."""

    def submit(self, request: Request) -> str:
        """Submit a job and return its id."""

    def query(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return the jobs that the scheduler still has, all with one query; one that is gone is left out."""

    def account(self, jobs: Sequence[str], since: float) -> dict[str, tuple[Seen, Usage]] | None:
        """Return what the accounting has so far of jobs submitted after `since` (Unix time); None if there is none."""

    def describe(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return what the scheduler still remembers of ended jobs, beyond what `query` answers."""

    def cancel(self, jobs: Sequence[str]) -> None:
        """Cancel jobs, all with one command; those that have ended don't matter."""

    def hosts(self) -> list[str]:
        """Return the names of the nodes that jobs of the site may run on."""
