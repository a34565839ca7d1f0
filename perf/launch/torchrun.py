"""What torchrun says on its standard error about ranks that failed. Pure parsing; formats of torch 2.0 to 2.14."""

from __future__ import annotations

import re
from dataclasses import dataclass

# One failure, as torch.distributed.elastic.multiprocessing.errors prints it (torch 2.14.1: _FAILURE_FORMAT_TEMPLATE).
# The five lines must follow each other: a rank's own exception text is printed below them and may hold anything.
FAILURE = re.compile(
    r"^\[(?P<place>\d+)\]:[ \t]*\n"
    r"[ \t]+time[ \t]+:[^\n]*\n"
    r"[ \t]+host[ \t]+: (?P<host>[^\n]*)\n"
    r"[ \t]+rank[ \t]+: (?P<rank>\d{1,9}) \(local_rank: \d+\)[ \t]*\n"
    r"[ \t]+exitcode[ \t]+: (?P<exit_code>-?\d{1,9}) \(pid: (?P<pid>\d{1,9})\)",
    re.MULTILINE,
)
ROOT_CAUSE = re.compile(r"^Root Cause \(first observed failure\):[ \t]*$", re.MULTILINE)
CLOSED = re.compile(
    r"Sending process (\d{1,9}) closing signal|Unable to shutdown process (\d{1,9}) via|Closing process (\d{1,9}) via"
)


@dataclass(frozen=True)
class Failure:
    """One rank in torchrun's report. `place` counts in the order of noticing; an `exit_code` below 0 is a signal."""

    rank: int
    exit_code: int
    pid: int
    host: str
    place: int
    root_cause: bool


@dataclass(frozen=True)
class Report:
    """torchrun's failure report: `failures` by rank, `closed` the PIDs of the ranks that torchrun ended itself."""

    failures: dict[int, Failure]
    closed: frozenset[int]

    @property
    def present(self) -> bool:
        """Whether torchrun reported a failure at all."""
        return bool(self.failures)


def parse_report(text: str) -> Report:
    """Read torchrun's report from its standard error; an empty report where there is none."""
    heading = ROOT_CAUSE.search(text)
    failures: dict[int, Failure] = {}
    for match in FAILURE.finditer(text):
        failure = Failure(
            rank=int(match["rank"]),
            exit_code=int(match["exit_code"]),
            pid=int(match["pid"]),
            host=match["host"].strip(),
            place=int(match["place"]),
            root_cause=heading is not None and match.start() > heading.start(),
        )
        # The report names a rank once; a later block of the same rank is not torchrun's.
        failures.setdefault(failure.rank, failure)
    closed = frozenset(int(number) for match in CLOSED.finditer(text) for number in match.groups() if number)
    return Report(failures, closed)
