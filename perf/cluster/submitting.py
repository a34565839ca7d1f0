"""From options to a run's folder: collect tests, plan jobs, write scripts. Nothing is submitted here."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perf import records
from perf.cluster.environment import job_environment
from perf.cluster.folders import SITE_FILE, JobFolder, RunFolder, Submission
from perf.cluster.jobs import Job, Plan, Test, make_plan, parse_collected
from perf.cluster.local import Local
from perf.cluster.lsf import Lsf
from perf.cluster.scheduler import Scheduler
from perf.cluster.script import ScriptParts, script_text
from perf.cluster.sites import Site, SiteError
from perf.cluster.slurm import Slurm
from perf.cluster.watching import request_for
from perf.launch.text import last_lines
from perf.machine import REPOSITORY
from perf.profiles import Profile

COLLECT_SECONDS = 300.0
"""Collecting takes a second; on a cold parallel file system the imports before it have taken minutes."""

TARGET = "perf"


class CollectionFailed(Exception):
    """pytest could not collect. `status` is its own exit status; the message holds its last words."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Wish:
    """What a user asked for, as far as it goes to pytest: its arguments without what to collect, and that."""

    arguments: tuple[str, ...]
    targets: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Wish:
        """Tell paths of perf tests from options and their values."""
        targets = [
            word
            for previous, word in zip(["", *words], words, strict=False)
            if (word == TARGET or word.startswith(TARGET + "/")) and not previous.startswith("-")
        ]
        return cls(tuple(word for word in words if word not in targets), tuple(targets) or (TARGET,))


def scheduler_for(site: Site) -> Scheduler:
    """Return who runs a site's jobs."""
    if site.scheduler.kind == "slurm":
        return Slurm(site)
    return Lsf(site) if site.scheduler.kind == "lsf" else Local()


def driver_command() -> list[str]:
    """Return how the driver's Python is started: no variable and no package of the user's home can change it."""
    return [sys.executable, "-E", "-s", "-m", "pytest"]


def collect(wish: Wish, own: Sequence[str]) -> list[Test]:
    """Ask pytest which tests would run. Starts it.

    Raises
    ------
    CollectionFailed
        If it ends with another status than 0.
    """
    with tempfile.TemporaryDirectory(prefix="stackproof-") as folder:
        target = Path(folder, "collected.json")
        words = [
            *driver_command(),
            *wish.targets,
            "-p",
            "perf.cluster.collecting",
            "-p",
            "no:cacheprovider",
            "--collect-only",
            "-q",
            f"--collect-to={target}",
            *own,
            *wish.arguments,
        ]
        done = subprocess.run(
            words,
            cwd=REPOSITORY,
            env=job_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=COLLECT_SECONDS,
            check=False,
        )
        if done.returncode == 5:
            # pytest's word for 'nothing collected': nothing will be judged.
            return []
        if done.returncode != 0 or not target.is_file():
            said = "\n".join(f"  | {line}" for line in last_lines(done.stdout + done.stderr, count=12))
            raise CollectionFailed(
                f"pytest could not collect the tests (exit status {done.returncode}):\n{said}",
                done.returncode or 1,
            )
        return parse_collected(target.read_text(encoding="utf-8"))


def check_site_here(site: Site, stack: str) -> None:
    """Check, before anything waits in a queue, what can be checked where jobs are submitted.

    Raises
    ------
    SiteError
        If the site has no such stack, the data root is not there, or a stack's Python is named by a path that is not
        there and nothing could bring it.
    """
    # A Python by its path, as without a site file: the job finds out what it is.
    table = None if os.sep in stack else site.stack(stack)
    root = site.data.root
    if root and not os.path.isdir(root):
        raise SiteError(
            f"{site.path}: [data] root: there is no folder {root} here; jobs would have no data. "
            f"Stage it with `nox -s data -- --root {root}` on a machine with network, or mend the path"
        )
    if table is None:
        return
    bare = not table.setup and not table.wrapper and not table.step_options
    if bare and os.sep in table.python and not os.access(table.python, os.X_OK):
        raise SiteError(f"{site.path}: [stacks.{stack}] python: there is no program {table.python} here")


def plan_jobs(
    wish: Wish,
    site: Site,
    stack: str,
    profile: Profile,
    device: str,
    most_nodes: int | None,
    options: Sequence[str],
) -> Plan:
    """Collect and gather. `options` are those that stackproof itself gives pytest."""
    extras = sum(
        1 for extra in ("--line-profile", "--phases", "--torch-trace", "--nsys") if extra in wish.arguments
    )
    tests = collect(wish, [*options, f"--site={site.path}", f"--stack={stack}"])
    return make_plan(tests, site, profile, device, most_nodes=most_nodes, extras=extras)


def job_script(job: Job, folder: JobFolder, submission: Submission, scheduler: Scheduler) -> str:
    """Return the script of one job."""
    run = folder.path.parents[1]
    command = [
        *driver_command(),
        f"@{folder.node_ids}",
        f"--site={run / SITE_FILE}",
        f"--stack={submission.stack}",
        f"--job-folder={folder.path}",
        f"--junit-xml={folder.path / 'junit.xml'}",
        # pytest's cache is the checkout's: jobs, and colleagues who share it, would write it at once.
        "-p",
        "no:cacheprovider",
        *submission.arguments,
    ]
    return script_text(
        ScriptParts(
            run=submission.run,
            job=job.name,
            folder=str(folder.path),
            repository=str(REPOSITORY),
            command=tuple(command),
            submitted_with=tuple(scheduler.submit_words(request_for(job, folder, submission.run))),
        )
    )


def make_submission(
    run: str, site: Site, stack: str, arguments: Sequence[str], plan: Plan, most_jobs: int, fleet: str = ""
) -> Submission:
    """Return what is kept of a submission."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"number {os.getuid()}"
    return Submission(
        run=run,
        kind=site.scheduler.kind,
        stack=stack,
        created=time.time(),
        user=user,
        host=socket.gethostname(),
        arguments=list(arguments),
        most_jobs=most_jobs,
        jobs=plan.jobs,
        left_out=plan.left_out,
        fleet=fleet,
    )


def prepare_run(results: Path, submission: Submission, site: Site, scheduler: Scheduler) -> RunFolder:
    """Make the run's folder with a folder for each job. The site file is copied: a later edit changes no run."""
    run = RunFolder(records.Run.create(results, submission.run).folder)
    run.write(submission, Path(site.path).read_text(encoding="utf-8"))
    for job in submission.jobs:
        folder = run.job(job.name)
        folder.prepare(job, job_script(job, folder, submission, scheduler))
    return run
