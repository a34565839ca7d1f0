"""``attach``, ``cancel`` and ``status``: a run that was submitted from another shell, or whose submitter is gone."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from perf.cluster.drawing import lines
from perf.cluster.folders import SITE_FILE, NoClusterRun, RunFolder, Submission
from perf.cluster.following import (
    INFRASTRUCTURE,
    USAGE,
    FollowedElsewhere,
    collect,
    follow,
    output_console,
    watching,
)
from perf.cluster.proof import exit_status
from perf.cluster.scheduler import Scheduler, SchedulerError
from perf.cluster.sites import Site, SiteError, load_site
from perf.cluster.submitting import scheduler_for
from perf.cluster.watching import Watcher
from perf.report.text import clean

DESCRIPTIONS = {
    "attach": "Follow a run again whose submitter is gone: submits what was not submitted yet, merges what jobs have "
    "left, and ends with the suite's exit status.",
    "cancel": "Cancel a run's jobs and merge what they have left. Others' runs are the scheduler's business.",
    "status": "Show a run's jobs once, and change nothing.",
}

ERRORS = (NoClusterRun, SiteError, SchedulerError, FollowedElsewhere, OSError)


def attach(words: Sequence[str]) -> int:
    """Follow a run again; jobs that were not submitted yet are submitted."""
    try:
        run, submission, site, scheduler = _opened("attach", words)
        with watching(run):
            return follow(run, submission, site, scheduler, output_console())
    except ERRORS as error:
        return _failed(error)


def cancel(words: Sequence[str]) -> int:
    """Cancel a run's jobs; merge what they have left, unless somebody follows the run and will."""
    try:
        run, submission, site, scheduler = _opened("cancel", words)
        watcher = Watcher(run, submission, site, scheduler, print)
        if watcher.over:
            print("every job has ended; nothing to cancel")
            return 0
        why = f"`cancel` by {_who()}"
        run.note_cancelled(why)
        try:
            with watching(run):
                ids = watcher.cancel(why)
                print(f"cancelled: {', '.join(ids) or 'none was running'}")
                collect(run, submission, watcher.jobs, output_console())
        except FollowedElsewhere:
            # The follower knows from the note that it was us, and collects.
            ids = [followed.id for followed in watcher.jobs if followed.id and followed.ending is None]
            if ids:
                scheduler.cancel(ids)
            print(
                f"cancelled: {', '.join(ids) or 'none was running'}; the process that follows the run collects it"
            )
        return 0
    except ERRORS as error:
        return _failed(error)


def status(words: Sequence[str]) -> int:
    """Show a run once and change nothing. Exit status: the run's own once it is over, 0 before."""
    try:
        run, submission, site, scheduler = _opened("status", words)
        watcher = Watcher(run, submission, site, scheduler, lambda _: None)
        ids = [followed.id for followed in watcher.jobs if followed.live]
        found = scheduler.query(ids) if ids else {}
        for followed in watcher.jobs:
            followed.seen = found.get(followed.id)
        if "--json" in words:
            print(json.dumps(_facts(submission, watcher), indent=2))
        else:
            print("\n".join(clean(line) for line in lines(watcher.jobs, time.time())))
        endings = [followed.ending for followed in watcher.jobs if followed.ending is not None]
        return exit_status(endings) if watcher.over else 0
    except ERRORS as error:
        return _failed(error)


def _facts(submission: Submission, watcher: Watcher) -> dict[str, object]:
    jobs = []
    for followed in watcher.jobs:
        seen, ending = followed.seen, followed.ending
        jobs.append(
            {
                "job": followed.job.name,
                "id": followed.id or None,
                "state": str(seen.phase) if seen else None,
                "reason": seen.reason if seen else None,
                "nodes": seen.nodes if seen else None,
                "started": seen.started if seen else None,
                "end": str(ending.end) if ending else None,
                "sentence": ending.sentence if ending else None,
                "exit_status": ending.status if ending else None,
            }
        )
    kept = {"run": submission.run, "stack": submission.stack, "arguments": submission.arguments}
    return {"schema": 1, **kept, "over": watcher.over, "jobs": jobs}


def _opened(command: str, words: Sequence[str]) -> tuple[RunFolder, Submission, Site, Scheduler]:
    parser = argparse.ArgumentParser(
        prog=f"python -m perf.cluster {command}", description=DESCRIPTIONS[command]
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as results/latest")
    if command == "status":
        parser.add_argument("--json", action="store_true", help="for scripts")
    run = RunFolder(parser.parse_args(list(words)).run.resolve())
    submission = run.read()
    site = load_site(run.path / SITE_FILE)
    return run, submission, site, scheduler_for(site)


def _who() -> str:
    try:
        return f"{getpass.getuser()} on {socket.gethostname()}"
    except (KeyError, OSError):
        return f"user number {os.getuid()} on {socket.gethostname()}"


def _failed(error: Exception) -> int:
    print(f"stackproof: {clean(str(error), keep_lines=True)}", file=sys.stderr)
    return USAGE if isinstance(error, (NoClusterRun, SiteError)) else INFRASTRUCTURE
