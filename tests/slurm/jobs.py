"""What tests do with jobs: submit a script, wait for a state, ask every command that knows the job."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from perf.cluster.slurm_text import SACCT_FIELDS, SQUEUE_FORMAT
from tests.slurm.cluster import Cluster

SACCT = (
    "JobIDRaw,JobID,JobName,Partition,Account,User,State,ExitCode,DerivedExitCode,Reason,Submit,Eligible,Start,End,"
    "ElapsedRaw,Timelimit,NNodes,NTasks,NCPUS,CPUTimeRAW,TotalCPU,MaxRSS,MaxRSSNode,AveRSS,ReqMem,ReqTRES,"
    "AllocTRES,NodeList,WorkDir"
)
"""Fields for --parsable2: all that says how a job ended and what it used."""

SQUEUE = "%i|%T|%r|%N|%D|%S|%e|%l|%M|%V|%u|%j"
"""Job, state, reason, nodes, their count, start, end, limit, time used, submission, user, name."""


def own_queries(job: int | str) -> list[list[str]]:
    """Return what perf.cluster itself asks about a job, or about several with commas between them."""
    return [
        ["squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={SQUEUE_FORMAT}"],
        ["sacct", "--noheader", "--parsable2", f"--jobs={job}", f"--format={','.join(SACCT_FIELDS)}"],
        ["scontrol", "--oneliner", "show", "job", *([] if "," in str(job) else [str(job)])],
    ]


FINAL = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
}
"""JobState words that a job does not leave again (squeue(1), JOB STATE CODES)."""


class Jobs:
    """The jobs of a cluster, as a user sees them."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.submissions: dict[int, tuple[list[str], subprocess.CompletedProcess[str]]] = {}

    def submit(self, body: str, *options: str, name: str = "job") -> int:
        """Write a bash script with `body`, submit it, and return the number of the job."""
        script = self.folder / f"{name}.sh"
        script.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        command = ["sbatch", f"--chdir={self.folder}", "--output=%x-%j.out", *options, str(script)]
        done = self.cluster.run(*command)
        found = re.search(r"Submitted batch job (\d+)", done.stdout)
        assert found is not None, done.stdout + done.stderr
        job = int(found[1])
        self.submissions[job] = (command, done)
        return job

    def fields(self, job: int) -> dict[str, str]:
        """Return what `scontrol show job` says, by key. Values with spaces in them are cut there."""
        text = self.cluster.run("scontrol", "--oneliner", "show", "job", str(job)).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def state(self, job: int) -> str:
        """Return the state of a job in the controller's own word."""
        return self.fields(job)["JobState"]

    def reason(self, job: int) -> str:
        """Return why a job is where it is, in the controller's own word."""
        return self.fields(job)["Reason"]

    def wait(self, job: int, *states: str, seconds: float = 60.0) -> str:
        """Wait until a job is in one of the states and return which; fail where it ends in another one."""
        wanted = set(states) or FINAL
        limit = time.monotonic() + seconds
        while True:
            state = self.state(job)
            if state in wanted:
                return state
            assert state not in FINAL, f"job {job} ended as {state}, not {sorted(wanted)}: {self.output(job)}"
            assert time.monotonic() < limit, (
                f"job {job} is still {state} after {seconds:g} s: {self.fields(job)}"
            )
            time.sleep(0.2)

    def until(self, what: str, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until something is so."""
        limit = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < limit, f"not {what} after {seconds:g} s"
            time.sleep(0.2)

    def output(self, job: int) -> str:
        """Return what the batch script printed, as far as it is there."""
        return "".join(
            path.read_text(encoding="utf-8", errors="replace") for path in self.folder.glob(f"*-{job}.out")
        )

    def accounted(self, job: int, field: str = "State") -> list[str]:
        """Return one field of sacct, a line a step (the job itself first)."""
        done = self.cluster.run(
            "sacct", "--noheader", "--parsable2", "--duplicates", f"--jobs={job}", f"--format={field}"
        )
        return done.stdout.splitlines()

    def wait_accounted(self, job: int, state: str, seconds: float = 60.0) -> None:
        """Wait until the database, which hears of a change later than everybody else, has a state for the job.

        Of a short job it hears of the steps first, and makes up a job named "allocation" for some seconds.
        """

        def told() -> bool:
            rows = [line.split("|") for line in self.accounted(job, "State,JobName")]
            words = {row[0].split()[0] for row in rows if row[0]}
            return state in words and all(row[1] != "allocation" for row in rows)

        self.until(f"accounted as {state}", told, seconds)

    def answers(self, job: int) -> list[tuple[list[str], subprocess.CompletedProcess[str]]]:
        """Ask every command about a job: its submission first, if there was one."""
        commands = [
            ["squeue", "--states=all", f"--jobs={job}"],
            ["squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={SQUEUE}"],
            ["scontrol", "show", "job", str(job)],
            ["sacct", "--duplicates", f"--jobs={job}"],
            ["sacct", "--parsable2", "--duplicates", f"--jobs={job}", f"--format={SACCT}"],
        ]
        commands += own_queries(job)
        asked = [(command, self.cluster.run(*command, check=False)) for command in commands]
        return [*([self.submissions[job]] if job in self.submissions else []), *asked]
