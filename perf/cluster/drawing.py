"""What a person sees while jobs wait and run: a table that is redrawn, or a line a change for cron and logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from perf.cluster.scheduler import Phase
from perf.cluster.watching import Followed
from perf.report.progress import choose_mode
from perf.report.text import duration, fit

HEARTBEAT_SECONDS = 600.0
"""In the plain mode: a log that says nothing for an hour looks like a watcher that has died."""

ROWS = 20
"""Rows of the live table. A hundred jobs do not fit a terminal: those that are done are counted instead."""


def row_of(followed: Followed, now: float) -> tuple[str, str, str, str]:
    """Return one job's line: name, id, state, and where, since when or why."""
    name, job = followed.job.name, followed.id or "–"
    if followed.ending is not None:
        return name, job, str(followed.ending.end), followed.ending.sentence
    if not followed.id:
        return name, job, "not submitted", "waits for one of the others to end (--jobs)"
    if followed.over_since is not None:
        return name, job, "ended", "its end is looked up"
    seen = followed.seen
    if seen is None:
        return name, job, "submitted", f"{duration(now - followed.submitted)} ago"
    if seen.phase is Phase.RUNNING:
        since = f" for {duration(now - seen.started)}" if seen.started else ""
        limit = f" of {duration(followed.job.seconds)}"
        return name, job, "running", f"on {seen.nodes or 'unknown nodes'}{since}{limit if since else ''}"
    if seen.phase is Phase.PENDING:
        waited = duration(now - followed.submitted)
        return name, job, "pending", f"for {waited}{f': {seen.reason}' if seen.reason else ''}"
    return name, job, str(seen.phase), seen.reason


def lines(jobs: Sequence[Followed], now: float) -> list[str]:
    """Return the table: jobs that are not done first; a count of those that are where they don't fit."""
    open_jobs = [followed for followed in jobs if followed.ending is None]
    done = [followed for followed in jobs if followed.ending is not None]
    shown = (open_jobs + done)[:ROWS]
    rows = [row_of(followed, now) for followed in shown]
    widths = [max((len(row[place]) for row in rows), default=0) for place in range(3)]
    drawn = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)), row[3]])
        for row in rows
    ]
    return [*drawn, *([f"and {len(jobs) - len(shown)} more"] if len(jobs) > len(shown) else []), counts(jobs)]


def counts(jobs: Sequence[Followed]) -> str:
    """Return how many jobs are in which state."""
    states: dict[str, int] = {}
    for followed in jobs:
        state = row_of(followed, 0.0)[2]
        states[state] = states.get(state, 0) + 1
    return f"{len(jobs)} jobs: " + ", ".join(f"{number} {state}" for state, number in states.items())


class Drawing:
    """Draws jobs. A context manager.

    Parameters
    ----------
    console
        Where to draw.
    jobs
        What to draw; looked at whenever it is drawn.
    clock
        Seconds since 1970.
    """

    def __init__(
        self, console: Console, jobs: Callable[[], Sequence[Followed]], clock: Callable[[], float] = time.time
    ) -> None:
        self._console = console
        self._jobs = jobs
        self._clock = clock
        self._said_at = clock()
        live = choose_mode(console) == "live"
        self._live = Live(console=console, auto_refresh=False, transient=True) if live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a sentence, with the time where nobody watches."""
        self._said_at = self._clock()
        moment = time.strftime("%H:%M:%S ", time.localtime(self._said_at))
        for line in text.splitlines():
            self._print(moment + line)

    def tick(self) -> None:
        """Redraw the table; in the plain mode say now and then that it goes on."""
        now = self._clock()
        if self._live is not None:
            text = "\n".join(fit(line, self._console.encoding) for line in lines(self._jobs(), now))
            self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
        elif now - self._said_at >= HEARTBEAT_SECONDS:
            self.say(counts(self._jobs()))

    def _print(self, line: str) -> None:
        # Text, so that nothing is markup.
        self._console.print(Text(fit(line, self._console.encoding)), soft_wrap=True)
