"""What the rules look at, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

from perf.cluster.lint.job import Launch, Size
from perf.cluster.lint.reader import Script


@dataclass(frozen=True)
class Finding:
    """One trap in a script.

    Attributes
    ----------
    line
        Where it is, from 1.
    name
        Stable short name.
    what
        What the script does.
    why
        What happens then.
    remedy
        What to write instead.
    """

    line: int
    name: str
    what: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Job:
    """What the rules look at."""

    script: Script
    size: Size
    launches: tuple[Launch, ...]

    def sets(self, *names: str) -> bool:
        """Whether the script sets one of these variables to something."""
        return any(each.name in names and each.value not in {"", "0"} for each in self.script.assignments)

    def line_of(self, *directives: str) -> int:
        """Return the line of the last of these directives that is read; 1 where there is none."""
        return max(
            (each.line for each in self.script.directives if each.read and each.name in directives), default=1
        )
