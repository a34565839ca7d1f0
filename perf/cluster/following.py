"""Follow a run of jobs to its end: poll, draw, cancel when told to leave, merge, and say what came of it."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import filelock
from rich.console import Console
from rich.text import Text

from perf import contract, records
from perf.cluster import fleet
from perf.cluster.accounting import Row, as_facts, completed, own_usage, remarks, table
from perf.cluster.drawing import Drawing
from perf.cluster.folders import RunFolder, Submission
from perf.cluster.merging import job_environment_facts, merge_jobs
from perf.cluster.proof import exit_status
from perf.cluster.scheduler import Scheduler, SchedulerError
from perf.cluster.sites import Site
from perf.cluster.watching import Followed, Unanswered, Watcher
from perf.launch.signals import Interruption
from perf.report.console import make_console
from perf.report.stacks import environment_lines
from perf.report.stored import load
from perf.report.summary import summarize
from perf.report.tables import print_report
from perf.report.text import fit

INTERRUPTED = 2
INFRASTRUCTURE = 11
USAGE = 4

LOOK_SECONDS = 0.5
"""Between two looks at signals and two drawings of the table."""

CANCEL_TRIES = 3
"""Together with their waits within the 30 s that nox leaves after Ctrl-C."""

CANCEL_WAIT_SECONDS = 3.0

MARKER_SECONDS = 10.0
"""After a cancellation, for the jobs' own last words: their pytest ends its launch and writes its files. What comes
later than that is on disk too, and `attach` merges it."""

ACCOUNTING = "accounting.json"


class FollowedElsewhere(Exception):
    """Another process follows this run."""


@contextlib.contextmanager
def watching(run: RunFolder) -> Iterator[None]:
    """Be the only one who follows a run.

    Raises
    ------
    FollowedElsewhere
        If somebody does already.
    """
    lock = filelock.FileLock(run.path / "watch.lock", mode=0o666, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise FollowedElsewhere(
            f"{run.path} is followed by another process. `python -m perf.cluster status {run.path}` shows it"
        ) from error
    except (OSError, NotImplementedError):
        # A file system without locks: two followers would do the same twice, and write the same.
        yield
        return
    try:
        yield
    finally:
        lock.release()


def follow(run: RunFolder, submission: Submission, site: Site, scheduler: Scheduler, console: Console) -> int:
    """Follow a run to its end and return its exit status.

    Ctrl-C, SIGTERM and a closed terminal cancel what was submitted, and what the jobs have left is merged all the same.
    """
    status: int | None = None
    watcher: Watcher | None = None
    with Interruption() as interruption, Drawing(console, lambda: watcher.jobs if watcher else []) as drawing:
        watcher = Watcher(run, submission, site, scheduler, drawing.say)
        try:
            while not watcher.over and not interruption.happened:
                watcher.step()
                _wait(site.scheduler.poll_seconds, watcher, interruption, drawing)
        except Unanswered as error:
            drawing.say(str(error))
            status = INFRASTRUCTURE
        if interruption.happened and not watcher.over and status is None:
            name = signal.Signals(interruption.signum or signal.SIGINT).name
            cancelled = cancel(watcher, f"the submitter was told to end by {name}", drawing)
            _await_markers(watcher.jobs, interruption)
            status = INTERRUPTED if cancelled else INFRASTRUCTURE
    # Outside: nothing is left to be cancelled, so whoever presses Ctrl-C now ends the report.
    return collect(run, submission, watcher.jobs, console, status=status)


def cancel(watcher: Watcher, why: str, drawing: Drawing) -> bool:
    """Cancel a run's jobs; try again where the scheduler does not answer. Returns whether it did."""
    for number in range(1, CANCEL_TRIES + 1):
        try:
            ids = watcher.cancel(why)
        except SchedulerError as error:
            drawing.say(f"cancelling, try {number} of {CANCEL_TRIES}: {error}")
            time.sleep(CANCEL_WAIT_SECONDS)
            continue
        drawing.say(f"cancelled {len(ids)} jobs: {', '.join(ids) or 'none was running'}")
        return True
    left = ", ".join(f.id for f in watcher.jobs if f.id and f.ending is None)
    drawing.say(f"these jobs may go on: {left}")
    return False


def _wait(seconds: float, watcher: Watcher, interruption: Interruption, drawing: Drawing) -> None:
    """Wait for the next poll; a signal, or the end of the run, ends the wait."""
    until = time.monotonic() + seconds
    while not watcher.over and not interruption.happened:
        drawing.tick()
        left = until - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(LOOK_SECONDS, left))


def _await_markers(jobs: Sequence[Followed], interruption: Interruption) -> None:
    """Wait for the end markers of jobs that had started; a second signal ends the wait."""
    started = [followed.folder for followed in jobs if followed.folder.started() is not None]
    until = time.monotonic() + MARKER_SECONDS
    while time.monotonic() < until and not interruption.urgent and any(f.marker() is None for f in started):
        time.sleep(LOOK_SECONDS)


def collect(
    run: RunFolder,
    submission: Submission,
    jobs: Sequence[Followed],
    console: Console,
    *,
    status: int | None = None,
) -> int:
    """Merge what the jobs have left, print the report and the accounting, and return the run's exit status.

    `status` replaces the one that follows from the jobs, where the run did not come to its own end.
    """
    rows = rows_of(jobs)
    facts: dict[str, object] = {
        "jobs": [
            {**fact, **job_environment_facts(f.folder)} for fact, f in zip(as_facts(rows), jobs, strict=True)
        ],
        "submitted_from": submission.host,
        "stack_name": submission.stack,
    }
    whole = records.Run(run.path)
    notes = merge_jobs(whole, [followed.folder for followed in jobs], facts)
    contract.write_whole(str(run.path / ACCOUNTING), json.dumps(as_facts(rows), indent=2) + "\n")
    _report(run, console)
    say = _printer(console)
    say("Jobs")
    for line in table(rows):
        say(line)
    for followed in jobs:
        if followed.ending is None:
            say(f"{followed.job.name} ({followed.id or 'not submitted'}): not known to have ended.")
        elif not followed.ending.good:
            say(
                f"{followed.job.name}: {followed.ending.end}. {followed.ending.sentence} {followed.folder.stdout}"
            )
    for note in notes:
        say(note)
    if submission.fleet:
        say("Fleet")
        for sentence in fleet.sentences(fleet.standings(whole.records())):
            say(sentence)
    endings = [f.ending for f in jobs if f.ending is not None]
    if status is None:
        status = exit_status(endings) if len(endings) == len(jobs) else INFRASTRUCTURE
    lost = sum(1 for f in jobs if f.ending is None or not f.ending.good)
    lost_words = f"; {lost} of {len(jobs)} jobs gave no whole result" if lost else ""
    say(f"exit status {status}{lost_words}; files: {run.path}")
    return status


def rows_of(jobs: Sequence[Followed]) -> list[Row]:
    """Return the accounting of jobs."""
    rows = []
    for followed in jobs:
        usage = completed(
            followed.usage, own_usage(followed.job, followed.folder, launches=followed.usage is None)
        )
        end = str(followed.ending.end) if followed.ending else "unknown"
        rows.append(Row(followed.job.name, followed.id, end, usage, remarks(usage)))
    return rows


def _report(run: RunFolder, console: Console) -> None:
    stored = load(run.path)
    if stored.records or stored.verdicts:
        environment = environment_lines(stored.environment)
        summary = summarize(stored.records, stored.verdicts)
        print_report(console, summary, environment=environment, folder=stored.folder, notes=stored.notes)


def _printer(console: Console) -> Callable[[str], None]:
    def say(line: str) -> None:
        console.print(Text(fit(line, console.encoding)), soft_wrap=True)

    return say


def output_console() -> Console:
    """Return the console of the commands."""
    return make_console(sys.stdout)
