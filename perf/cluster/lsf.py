"""LSF: bsub, bjobs and bkill. Never tried on a real LSF, for which there is no free server: see docs/sites.md."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from perf.cluster import commands
from perf.cluster.environment import job_environment
from perf.cluster.lsf_text import BJOBS_FORMAT, parse_bjobs, parse_bsub
from perf.cluster.scheduler import Request, SchedulerError, Seen, Usage
from perf.cluster.sites import Site
from perf.cluster.templates import fill

WARNING_MINUTES = 2
"""Before its time limit a job is told to end; LSF counts minutes, and one would be less than the driver needs."""

NOT_FOUND = ("is not found", "No matching job found", "No unfinished job found", "Job has already finished")


class Lsf:
    """Runs jobs with LSF; see `perf.cluster.slurm.Slurm` for the parameters."""

    def __init__(self, site: Site, environ: Mapping[str, str] | None = None) -> None:
        self._site = site
        self._environ = job_environment(os.environ if environ is None else environ, site.scheduler.keep)

    def submit_words(self, request: Request) -> list[str]:
        """Return the bsub command. The script goes to its standard input, which every LSF reads."""
        scheduler = self._site.scheduler
        if "%" in str(request.output):
            raise SchedulerError(
                f"{request.output}: LSF replaces what follows a % in the name of an output file; "
                f"name results by a path without one (--results)"
            )
        slots = request.nodes * request.cores
        amounts = {"nodes": request.nodes, "gpus": request.gpus, "cores": request.cores, "slots": slots}
        named = {"-q": scheduler.partition, "-P": scheduler.account, "-sla": scheduler.qos}
        return [
            "bsub",
            "-J",
            request.name,
            "-o",
            str(request.output),
            "-cwd",
            str(request.folder),
            *(word for option, value in named.items() if value for word in (option, value)),
            *fill(scheduler.nodes_asked, amounts),
            *(fill(scheduler.gpus_asked, amounts) if request.gpus else []),
            "-W",
            str(-(-request.seconds // 60)),
            *(["-x"] if request.exclusive else []),
            *(["-m", request.hold_to] if request.hold_to else []),
            "-rn",
            "-wa",
            "USR1",
            "-wt",
            str(WARNING_MINUTES),
            *scheduler.options,
        ]

    def submit(self, request: Request) -> str:
        """Submit a job and return its id."""
        text = request.script.read_text(encoding="utf-8")
        done = commands.run(self.submit_words(request), environ=self._environ, stdin=text)
        job = parse_bsub(done.output) if done.status == 0 else None
        if job is None:
            raise done.error(f"job {request.name} was not submitted")
        return job

    def query(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return the jobs that LSF still holds, for an hour (CLEAN_PERIOD) also those that have ended."""
        return {job: seen for job, (seen, _) in self._all(jobs).items()}

    def account(self, jobs: Sequence[str], since: float) -> dict[str, tuple[Seen, Usage]] | None:
        """Return what bjobs says of ended jobs: LSF's own accounting (bacct) has no form for programs."""
        try:
            found = self._all(jobs)
        except SchedulerError:
            return None
        return {job: both for job, both in found.items() if both[0].phase.ended}

    def describe(self, jobs: Sequence[str]) -> dict[str, Seen]:
        """Return nothing beyond `account`."""
        return {}

    def cancel(self, jobs: Sequence[str]) -> None:
        """Cancel jobs."""
        done = commands.run(["bkill", *jobs], environ=self._environ)
        if done.status != 0 and not any(word in done.errors + done.output for word in NOT_FOUND):
            raise done.error(f"jobs {', '.join(jobs)} could not be cancelled")

    def _all(self, jobs: Sequence[str]) -> dict[str, tuple[Seen, Usage]]:
        done = commands.run(["bjobs", "-noheader", "-o", BJOBS_FORMAT, *jobs], environ=self._environ)
        # bjobs ends with 255 where one of many jobs is not known any more.
        if done.status != 0 and not any(word in done.errors for word in NOT_FOUND):
            raise done.error("the queue can't be read")
        found = parse_bjobs(done.output)
        return {job: found[job] for job in jobs if job in found}

    def hosts(self) -> list[str]:
        """Return nothing: which hosts a queue reaches has no form for programs in LSF."""
        raise SchedulerError(
            "LSF does not list a queue's hosts for programs; name them: --each-node=HOST,HOST"
        )
