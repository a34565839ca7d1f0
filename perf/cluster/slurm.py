"""Slurm: sbatch, squeue, sacct, scontrol and scancel."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping, Sequence

from perf.cluster import commands
from perf.cluster.environment import job_environment
from perf.cluster.scheduler import Request, SchedulerError, Seen, Usage
from perf.cluster.sites import Site
from perf.cluster.slurm_text import (
    SACCT_FIELDS,
    SQUEUE_FORMAT,
    parse_sacct,
    parse_scontrol,
    parse_sinfo,
    parse_squeue,
)
from perf.cluster.templates import fill

WARNING_SECONDS = 90
"""Before its time limit a job is told to end: the driver gives a launch 10 s to close and 5 s more to be killed, and
writes its files; Slurm delivers the signal up to 60 s late."""

NOBODY_THERE = re.compile(
    r"unable to contact|socket timed out|connection (refused|timed out)|zero bytes", re.IGNORECASE
)
"""The controller may have taken the job before it went silent: then nothing is submitted twice."""

GONE = "Invalid job id"


class Slurm:
    """Runs jobs with Slurm.

    Parameters
    ----------
    site
        How jobs are submitted.
    environ
        The caller's environment; jobs get it without what belongs to an outer job.
    """

    def __init__(self, site: Site, environ: Mapping[str, str] | None = None) -> None:
        self._site = site
        self._environ = job_environment(os.environ if environ is None else environ, site.scheduler.keep)

    def submit_words(self, request: Request) -> list[str]:
        """Return the sbatch command. Everything stands on it: ``SBATCH_*`` variables would win over ``#SBATCH``."""
        scheduler = self._site.scheduler
        amounts = {
            "nodes": request.nodes,
            "gpus": request.gpus,
            "cores": request.cores,
            "slots": request.nodes,
        }
        named = {"partition": scheduler.partition, "account": scheduler.account, "qos": scheduler.qos}
        return [
            "sbatch",
            "--parsable",
            f"--job-name={request.name}",
            # The replacement symbols of a file name, such as %j, are not meant.
            f"--output={str(request.output).replace('%', '%%')}",
            f"--chdir={request.folder}",
            *(f"--{option}={value}" for option, value in named.items() if value),
            *fill(scheduler.nodes_asked, amounts),
            "--ntasks-per-node=1",
            f"--cpus-per-task={request.cores}",
            *(fill(scheduler.gpus_asked, amounts) if request.gpus else []),
            f"--time={-(-request.seconds // 60)}",
            *(["--exclusive"] if request.exclusive else []),
            *([f"--nodelist={request.hold_to}"] if request.hold_to else []),
            # A second start would measure into the first one's folder; the script refuses it as well.
            "--no-requeue",
            f"--signal=B:USR1@{WARNING_SECONDS}",
            "--export=ALL",
            *scheduler.options,
            str(request.script),
        ]

    def submit(self, request: Request) -> str:
        """Submit a job and return its id."""
        done = commands.run(self.submit_words(request), environ=self._environ)
        # "123;cluster" where the cluster is one of several; a site's wrapper may print lines of its own before.
        last = done.output.strip().splitlines()[-1:]
        match = re.fullmatch(r"(\d+)(;\S*)?", last[0].strip()) if last else None
        if done.status == 0 and match:
            return match[1]
        if NOBODY_THERE.search(done.errors):
            taken = self._by_name(request.name)
            if taken is not None:
                return taken
        raise done.error(f"job {request.name} was not submitted")

    def _by_name(self, name: str) -> str | None:
        words = ["squeue", "--noheader", "--states=all", f"--name={name}", f"--format={SQUEUE_FORMAT}"]
        done = commands.run(words, environ=self._environ)
        if done.status != 0:
            raise done.error(
                f"the controller went silent, so it is not known whether job {name} was submitted"
            )
        return next(iter(parse_squeue(done.output)), None)

    def query(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return the jobs that Slurm still holds, for some minutes also those that have ended."""
        words = [
            "squeue",
            "--noheader",
            "--states=all",
            f"--jobs={','.join(jobs)}",
            f"--format={SQUEUE_FORMAT}",
        ]
        done = commands.run(words, environ=self._environ)
        if done.status != 0 and GONE not in done.errors:
            raise done.error("the queue can't be read")
        found = parse_squeue(done.output)
        return {job: found[job] for job in jobs if job in found}

    def account(self, jobs: Sequence[str], since: float) -> dict[str, tuple[Seen, Usage]] | None:
        """Return what slurmdbd has so far; None where accounting is off or does not answer."""
        # From the day before: without a start, sacct looks from midnight on and loses a job that was sent before it.
        start = datetime.datetime.fromtimestamp(since - 86400).astimezone()
        words = [
            "sacct",
            "--noheader",
            "--parsable2",
            f"--jobs={','.join(jobs)}",
            f"--starttime={start:%Y-%m-%d}",
            f"--format={','.join(SACCT_FIELDS)}",
        ]
        try:
            done = commands.run(words, environ=self._environ)
        except SchedulerError:
            return None
        return parse_sacct(done.output) if done.status == 0 else None

    def describe(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return what slurmctld remembers, some minutes long (MinJobAge)."""
        # Several can't be named; without a name it tells of all.
        words = ["scontrol", "--oneliner", "show", "job", *(jobs if len(jobs) == 1 else [])]
        try:
            done = commands.run(words, environ=self._environ)
        except SchedulerError:
            return {}
        return {job: seen for job, seen in parse_scontrol(done.output).items() if job in jobs}

    def cancel(self, jobs: Sequence[str]) -> None:
        """Cancel jobs."""
        done = commands.run(["scancel", "--quiet", *jobs], environ=self._environ)
        if done.status != 0 and GONE not in done.errors:
            raise done.error(f"jobs {', '.join(jobs)} could not be cancelled")

    def hosts(self) -> list[str]:
        """Return the nodes of the site's partition that are not down or drained."""
        partition = self._site.scheduler.partition
        words = ["sinfo", "--noheader", "--Node", "--responding", "--format=%N|%t"]
        done = commands.run(
            [*words, *([f"--partition={partition}"] if partition else [])], environ=self._environ
        )
        if done.status != 0:
            raise done.error("the nodes can't be listed")
        return parse_sinfo(done.output)
