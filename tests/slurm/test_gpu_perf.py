"""Whole runs of the suite as jobs of a real Slurm: what training does there, and every way in which a job ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perf import records

ROOT = Path(__file__).parents[2]
FAKE = ["--stack=/fake/bin/python", "-p", "tests.perf.suite.helpers.fake_stack", "--share-node"]
QUESTION = ["-k", "mnist_cnn and world_size_1"]
"""A group of two variants, two launches in profile smoke, in a job of one node."""

SITE = """
[scheduler]
kind = "slurm"
poll_seconds = 1.0
accounting_seconds = 15.0
{scheduler}

[node]
cores = 2
most = 2

[stacks.real]
python = "{real}"

[stacks.again]
python = "{real}"

[stacks.slow]
python = "{slow}"

[stacks.greedy]
python = "{greedy}"
"""

SLOW = '#!/bin/bash\necho $$ >>"$0.pids"\nsleep 300\n'
GREEDY = """#!{python}
import time
held = bytearray(b"1") * (900 << 20)
time.sleep(300)
"""


class Suite:
    """`python -m perf.cluster` with a site of this Slurm."""

    def __init__(self, jobs, folder):
        self.jobs, self.folder = jobs, folder
        self.results = folder / "res ults"
        # Spaces in the path, not in the name: Slurm's tracking by parents can't read a process whose name holds one,
        # and does not end it with its job.
        scripts = folder / "scripts of a test"
        scripts.mkdir()
        self.slow, greedy = scripts / "slow", scripts / "greedy"
        self.slow.write_text(SLOW)
        greedy.write_text(GREEDY.format(python=sys.executable))
        for script in (self.slow, greedy):
            script.chmod(0o755)
        self.real, self.greedy = sys.executable, greedy
        self.site = folder / "site.toml"
        self.write_site()

    def write_site(self, scheduler=""):
        """Write the site file anew, with more lines in its table ``scheduler``."""
        text = SITE.format(scheduler=scheduler, real=self.real, slow=self.slow, greedy=self.greedy)
        self.site.write_text(text)

    def command(self, *words):
        """Return the command and the environment of a run, or of a question about one."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
        environment |= {"FAKE_STACK": json.dumps({"cores": 2}), "COLUMNS": "160"}
        command = [sys.executable, "-m", "perf.cluster", *map(str, words)]
        if words[0] not in ("status", "cancel", "attach"):
            command += [f"--site={self.site}", f"--results={self.results}", "--profile=smoke"]
        return command, environment

    def run(self, *words, timeout=240):
        """Run to the end."""
        command, environment = self.command(*words)
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def start(self, *words):
        """Start, in a session of its own."""
        command, environment = self.command(*words)
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @property
    def latest(self):
        """The folder of the last run."""
        return (self.results / "latest").resolve()

    def job_id(self):
        """Wait for the number of the run's first job, and return it."""
        found = []

        def there():
            names = self.jobs.cluster.run("squeue", "--noheader", "--format=%i|%T", check=False).stdout
            found[:] = re.findall(r"^(\d+)\|", names, re.MULTILINE)
            return bool(found)

        self.jobs.until("in the queue", there)
        return int(found[0])

    def running(self):
        """Wait until the first job runs and its worker has begun, and return the job's number."""
        job = self.job_id()
        self.jobs.wait(job, "RUNNING")
        self.jobs.until("begun", Path(f"{self.slow}.pids").exists)
        return job

    def account(self):
        """Return the run's account, a row a job."""
        return json.loads((self.latest / "accounting.json").read_text())


@pytest.fixture
def suite(slurm, tmp_path):
    """The suite on a cluster with accounting."""
    return Suite(slurm, tmp_path)


def ended(process, timeout=120):
    """Return a submitter's exit status and output, once it has ended."""
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, output


def test_training_on_one_node_and_on_two(suite):
    """Real ranks meet over gloo, in one job of a node and one of two; records say where each rank was."""
    # Both "nodes" are this machine, which has one lock.
    done = suite.run(
        "--stack=real", "--share-node", "-k", "mnist_cnn and (world_size_1 or another_node)", timeout=300
    )

    run = records.Run(suite.latest)
    launches = {record.variant: record for record in run.records()}
    # One launch a variant decides nothing, which is smoke's own status 10 or, all told, 0.
    assert done.returncode in (0, 10), done.stdout + done.stderr
    assert {1, 2} == {record.nodes for record in launches.values()}
    two = next(record for record in launches.values() if record.nodes == 2)
    # Both nodes are this machine, so the host's name is one; Slurm's account tells the nodes.
    assert 4 == len(two.host)
    assert 1 == len(set(two.parameters_digests))
    assert [] == [reason for record in launches.values() for reason in record.reasons]
    rows = {row["job"]: row for row in suite.account()}
    assert {"done"} == {row["end"] for row in rows.values()}
    assert {"sacct"} == {row["source"] for row in rows.values()}
    assert all(row["wall_seconds"] > 0 for row in rows.values())
    assert {1, 2} == {len(row["nodes"].split(",")) for row in rows.values()}


def test_two_stacks_of_a_site_are_compared_in_one_job(suite):
    """By their names in the site file: both are launched in one allocation, and the same work is asserted of them."""
    question = "same_work and mnist_cnn-single-1cpu-fp32-native]"
    command, environment = suite.command("run")
    comparing = [
        sys.executable,
        "-m",
        "perf.comparing",
        "real",
        "again",
        *(word for word in command[4:] if word != "--profile=smoke"),
    ]
    done = subprocess.run(
        [*comparing, "--profile=compare-smoke", "--launches=1", "-k", question],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    launches = records.Run(suite.latest).records()
    assert ["new", "old"] == sorted(record.side for record in launches)
    assert 1 == len({record.parameters_digests[0] for record in launches})
    assert ["done"] == [row["end"] for row in suite.account()]


def test_without_accounting_the_run_is_judged_all_the_same(slurm_without_accounting, tmp_path):
    """Where sacct is disabled the end marker and the controller prove the end, and our own sampler the account."""
    suite = Suite(slurm_without_accounting, tmp_path)
    done = suite.run(*FAKE, *QUESTION)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert ["done"] == [row["end"] for row in suite.account()]
    assert ["own"] == [row["source"] for row in suite.account()]


def test_a_controller_that_restarts_is_waited_for(suite):
    """The submitter goes on while nobody answers, and the run ends as if nothing had been."""
    process = suite.start("--stack=slow", *QUESTION)
    job = suite.running()
    suite.jobs.cluster.stop_controller()
    time.sleep(3.0)
    assert process.poll() is None
    suite.jobs.cluster.start_controller()
    suite.jobs.cluster.run("scancel", str(job))
    status, output = ended(process)

    assert 11 == status, output
    assert "cancelled by somebody" in output


def test_a_submitter_that_was_killed_is_followed_from_another_shell(suite):
    """The job runs on; status shows it, attach follows it to its end, and the run is judged."""
    process = suite.start(*FAKE, *QUESTION)
    suite.job_id()
    process.kill()
    process.communicate(timeout=30)

    assert 0 == suite.run("status", suite.latest).returncode
    done = suite.run("attach", suite.latest)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert ["done"] == [row["end"] for row in suite.account()]
    assert records.Run(suite.latest).verdicts()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_leaving_cancels_the_job(suite, signum):
    """Ctrl-C and a closed terminal leave nothing in the queue."""
    process = suite.start("--stack=slow", *QUESTION)
    suite.running()
    process.send_signal(signum)
    status, output = ended(process)

    assert 2 == status, output
    assert "cancelled 1 jobs" in output
    suite.jobs.until(
        "empty", lambda: not suite.jobs.cluster.run("squeue", "--noheader").stdout.strip(), seconds=30.0
    )


ENDS = {
    "cancelled by somebody": ["scancel", "{job}"],
    "timed out": ["scontrol", "update", "JobId={job}", "EndTime=now+1"],
    "node failed": ["scontrol", "update", "NodeName={node}", "State=DOWN", "Reason=test"],
    # Jobs are submitted with --no-requeue; an administrator can have it otherwise.
    "requeued": ["bash", "-c", "scontrol update JobId={job} Requeue=1 && scontrol requeue {job}"],
}
"""What an administrator, a clock or a broken node does to a running job."""


@pytest.mark.parametrize("end", ENDS)
def test_each_end_of_a_job_has_its_word(suite, end):
    """A run whose job ended so is status 11, says the word, and keeps its account."""
    process = suite.start("--stack=slow", *QUESTION)
    job = suite.running()
    node = suite.jobs.fields(job)["NodeList"]
    suite.jobs.cluster.run(*(word.format(job=job, node=node) for word in ENDS[end]))
    status, output = ended(process, timeout=150)

    assert 11 == status, output
    assert end in output
    assert [end] == [row["end"] for row in suite.account()]


def test_a_preempted_job_has_its_word(suite):
    """A job of a better partition takes the node: preempted, status 11."""
    process = suite.start("--stack=slow", *QUESTION)
    job = suite.running()
    suite.jobs.cluster.run("scontrol", "update", f"JobId={job}", "Requeue=0")
    suite.jobs.submit("true", "--partition=urgent", "--nodes=2", "--exclusive", name="urgent")
    status, output = ended(process)

    assert 11 == status, output
    assert "preempted" in output


def test_a_job_that_never_runs_is_given_up(suite):
    """Held past the site's pending limit: never ran, cancelled, status 11."""
    suite.write_site(scheduler='pending_hours = 0.01\noptions = ["--hold"]')
    done = suite.run("--stack=slow", *QUESTION)

    assert 11 == done.returncode, done.stdout + done.stderr
    assert "never ran" in done.stdout
    assert "" == suite.jobs.cluster.run("squeue", "--noheader").stdout.strip()


def test_a_dead_dependency_is_told(suite):
    """A job that waits for one which failed is never run, with Slurm's reason."""
    failed = suite.jobs.submit("exit 1", name="failed")
    suite.jobs.wait(failed, "FAILED")
    suite.write_site(scheduler=f'pending_hours = 0.01\noptions = ["--dependency=afterok:{failed}"]')
    done = suite.run("--stack=slow", *QUESTION)

    assert 11 == done.returncode, done.stdout + done.stderr
    assert "DependencyNeverSatisfied" in done.stdout


def test_each_node_is_measured_and_the_run_names_them(suite):
    """--each-node asks the same on both nodes: a job a node, and the fleet's table holds both."""
    done = suite.run(*FAKE, *QUESTION, "--each-node")

    assert 0 == done.returncode, done.stdout + done.stderr
    nodes = {row["nodes"] for row in suite.account()}
    assert set(suite.jobs.cluster.node_states()) == nodes
    assert all(name in done.stdout for name in nodes)


def test_confirmation_runs_on_the_node_that_was_named(suite):
    """--confirm-on NODE runs there and nowhere else."""
    node = max(suite.jobs.cluster.node_states())
    done = suite.run(*FAKE, *QUESTION, f"--confirm-on={node}")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert [node] == [row["nodes"] for row in suite.account()]
