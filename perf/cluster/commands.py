"""The one place where a scheduler's commands are started."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.cluster.scheduler import SchedulerError
from perf.launch.text import harmless, last_lines

COMMAND_SECONDS = 60.0
"""A busy controller answers within its own MessageTimeout, 10 s by default and 60 s where sites raise it."""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    words: tuple[str, ...]
    status: int
    output: str
    errors: str

    @property
    def said(self) -> str:
        """Its own last words."""
        return " | ".join(last_lines(self.errors if self.errors.strip() else self.output, count=4))

    def error(self, what: str) -> SchedulerError:
        """Return the error that it failed to do `what`."""
        return SchedulerError(
            f"{what}: {self.words[0]} ended with exit status {self.status}: {self.said or 'it said nothing'}\n"
            f"  The command: {harmless(shlex.join(self.words))}"
        )


def run(
    words: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = COMMAND_SECONDS,
) -> Done:
    """Run a scheduler's command, never through a shell.

    It is in a session of its own: Ctrl-C must not end an `sbatch` that has half submitted a job.

    Raises
    ------
    SchedulerError
        If it can't be started or does not end in time.
    """
    try:
        process = subprocess.Popen(
            list(words),
            env=dict(os.environ if environ is None else environ),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            start_new_session=True,
        )
    except OSError as error:
        raise SchedulerError(
            f"{harmless(words[0])} can't be started ({error.strerror}). Is this a machine that submits jobs?"
        ) from error
    try:
        output, errors = process.communicate(stdin, timeout=timeout)
    except BaseException as error:
        process.kill()
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise SchedulerError(
            f"{words[0]} gave no answer within {timeout:g} s: {harmless(shlex.join(words))}"
        ) from error
    return Done(tuple(words), process.returncode, output, errors)
