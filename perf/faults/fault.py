"""What a planted fault is. Data; planting is `perf.faults.plant`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LAUNCH = "the launch fails"
INVALID = "the launch is invalid"

KINDS = ("data", "device", "configuration", "communication", "infrastructure")


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes
    ----------
    name
        What ``--plant`` takes.
    kind
        One of `KINDS`.
    what
        What is wrong, in a sentence.
    caught_by
        `LAUNCH`, `INVALID`, or the name of the perf test whose verdict must not be ``pass``.
    words
        A regular expression that the message of what caught it must match.
    environment
        Variables of the worker, beside those that inject the fault.
    injected
        Whether `perf.faults.inject` carries it; else its environment, or what is put beside it, is the fault.
    ranks
        How many ranks it needs: cores on the CPU, GPUs where `gpu`.
    verdict
        What a perf test that catches it ends with: ``fail`` or ``invalid``.
    selection
        For ``-k``, behind the perf test's name: which of its cases.
    launches
        A side that the verdict needs: 1 for an exact fact, 7 for a gross difference of two sides, 10 for one sample;
        None for the profile's own number.
    profile
        In which the perf test runs.
    options
        Words of the perf test's run beside these.
    root
        Whether only root can plant it.
    gpu
        Whether it acts on a GPU, so that a machine without one can't carry it.
    asked
        Fields of the launch's spec that differ from the profile's: a setting that is dropped must have been asked for.
    fresh
        Whether it acts as a rank's process starts, which a fork does not.
    beside
        What is put beside the launch: ``gpu-memory`` (another process on the card) or ``foreign-references``
        (a reference file of another system); empty for nothing.
    seconds
        What it costs on a machine with GPUs, by fork: an estimate, so that a plan can keep to a time.
    """

    name: str
    kind: str
    what: str
    caught_by: str
    words: str
    environment: tuple[tuple[str, str], ...] = ()
    injected: bool = True
    ranks: int = 2
    verdict: str = "fail"
    selection: str = ""
    launches: int | None = None
    profile: str = "smoke"
    options: tuple[str, ...] = ()
    root: bool = False
    gpu: bool = False
    asked: tuple[tuple[str, Any], ...] = ()
    fresh: bool = False
    beside: str = ""
    seconds: float = 15.0

    @property
    def of_a_launch(self) -> bool:
        """Whether one launch shows it by itself, without a perf test."""
        return self.caught_by in (LAUNCH, INVALID)

    @property
    def compares(self) -> bool:
        """Whether it is planted in the new one of two sides of one stack."""
        return self.profile.startswith("compare")
