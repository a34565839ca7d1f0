"""Whole runs as jobs of this machine: real scripts, processes, hooks and files; the stack answers at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from perf import records

ROOT = Path(__file__).parents[3]
FAKE = ["--stack=/fake/bin/python", "-p", "tests.perf.suite.helpers.fake_stack", "--share-node"]
SITE = '[scheduler]\nkind = "local"\npoll_seconds = 1.0\naccounting_seconds = 1.0\n[node]\ncores = 2\n'
SLOW = '[stacks.slow]\npython = "{python}"\n'


@pytest.fixture
def cluster(tmp_path):
    """Run `python -m perf.cluster` with a local site: `cluster("status", run)`; `start=True` for a process."""
    slow = tmp_path / "slow python"
    slow.write_text('#!/bin/bash\necho $$ >>"$0.pids"\nsleep 300\n')
    slow.chmod(0o755)
    site = tmp_path / "my site.toml"
    site.write_text(SITE + SLOW.format(python=slow))

    def run(*words, start=False, settings=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
        environment |= {"FAKE_STACK": json.dumps({"cores": 2, **(settings or {})}), "COLUMNS": "160"}
        command = [sys.executable, "-m", "perf.cluster", *words]
        if words[0] not in ("status", "cancel", "attach"):
            command += [f"--site={site}", f"--results={tmp_path / 'res ults'}", "--profile=smoke"]
        if start:
            return subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                start_new_session=True,
            )  # fmt: skip
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    run.latest = tmp_path / "res ults" / "latest"
    run.slow_pids = Path(f"{slow}.pids")
    return run


def wait_for(condition, process):
    """Wait until something is so, as long as a process lives."""
    while not condition():
        assert None is process.poll(), process.stdout.read()
        time.sleep(0.05)


def test_a_run_as_jobs_is_merged_judged_and_accounted(cluster):
    """Records, verdicts, JUnit and the account of the jobs are the run's; the exit status is theirs."""
    done = cluster(*FAKE, "-k", "mnist_cnn and world_size_1")

    assert 0 == done.returncode, done.stdout + done.stderr
    run = records.Run(cluster.latest.resolve())
    assert {run.name} == {record.run for record in run.records()}
    assert all(record.launch.startswith("1node-0gpu-") for record in run.records())
    assert ["test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]"] == [v.test for v in run.verdicts()]
    assert (run.folder / "junit.xml").read_text().count("<testsuite ") == 1
    (row,) = json.loads((run.folder / "accounting.json").read_text())
    assert ("done", "own") == (row["end"], row["source"])
    assert row["wall_seconds"] >= 0
    environment = json.loads((run.folder / "environment.json").read_text())
    assert "1node-0gpu" == environment["jobs"][0]["job"]
    for folder in (run.folder / "jobs/1node-0gpu", run.folder):
        outcomes = (folder / "tests.jsonl").read_text().splitlines()
        assert ["inconclusive"] == [json.loads(line)["verdict"] for line in outcomes]


def test_a_failed_fact_in_a_job_is_the_runs_status_1(cluster):
    """What pytest says in the job is what the caller gets."""
    changes = {
        "ddp-1cpu": {"parameters_digests": ["a"], "losses_finite": False},
        "single": {"losses_finite": False},
    }
    done = cluster(*FAKE, "-k", "mnist_cnn and test_loss_falls", settings={"changes": changes})

    assert 1 == done.returncode, done.stdout + done.stderr


def test_a_launch_that_fails_in_a_job_is_11_and_the_rest_is_kept(cluster):
    """Infrastructure trouble inside a job is trouble of the run."""
    done = cluster(*FAKE, "-k", "mnist_cnn and world_size_1", settings={"fail": {"ddp-1cpu": "it broke"}})

    assert 11 == done.returncode, done.stdout + done.stderr
    assert records.Run(cluster.latest.resolve()).records()


def test_nothing_that_can_run_is_12_and_submits_nothing(cluster):
    """A site without GPUs has no GPU test to run."""
    done = cluster(*FAKE, "-k", "mnist_cnn and world_size_1", "--device=cuda")

    assert 12 == done.returncode, done.stdout + done.stderr
    assert "needs 1 GPU, 0 at my site" in done.stdout
    assert not cluster.latest.exists()


def test_a_dry_run_shows_jobs_scripts_and_reasons_and_leaves_nothing(cluster):
    """People see hours, limits and the script; scripts get JSON."""
    refused = cluster(*FAKE, "-k", "mnist_cnn and world_size_1", "--plan")
    assert (4, "what would be submitted is shown by --dry-run") == (
        refused.returncode,
        refused.stderr.strip()[-45:],
    )
    done = cluster(*FAKE, "-k", "mnist_cnn and world_size_1", "--dry-run")
    assert 0 == done.returncode, done.stderr
    assert "GPU hours planned" in done.stdout
    assert "#!/bin/bash" in done.stdout

    facts = json.loads(cluster(*FAKE, "-k", "mnist_cnn and world_size_1", "--dry-run", "--json").stdout)

    assert ["1node-0gpu"] == [job["name"] for job in facts["jobs"]]
    assert not cluster.latest.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--here", "--dry-run"], "it excludes --dry-run"),
        (["--here", "--each-node"], "it excludes --each-node"),
        (["--here", "--confirm-on=n1"], "it excludes --confirm-on"),
        (["--each-node=n1", "--confirm-on=n2"], "exclude each other"),
        (["--jobs=-1"], "--jobs=-1: expected a number of jobs, 1 or more"),
        (["--jobs=0"], "--jobs=0: expected a number of jobs, 1 or more"),
        (["--jobs=1_0"], "--jobs=1_0: expected a number of jobs"),
        (["--each-node="], "--each-node: nothing is no name of a node"),
        (["--each-node=n[1-3"], "a bracket is not closed"),
        (["--each-node=../x"], "'../x' is no name of a node"),
        (["--confirm-on="], "--confirm-on: nothing is no name of a node"),
        (["--confirm-on=n1,n2"], "--confirm-on: expected one node, got 2"),
        (["--confirm-on=--reservation=x"], "'--reservation=x' is no name of a node"),
    ],
)
def test_what_can_t_be_meant_is_refused(cluster, words, told):
    """One line, status 4, and nothing is submitted or run."""
    done = cluster(*FAKE, *words)

    assert (4, "") == (done.returncode, done.stdout)
    assert told in done.stderr
    assert 1 == len(done.stderr.splitlines())
    assert not cluster.latest.exists()


def test_a_list_of_nodes_is_read_as_slurm_writes_it(cluster):
    """A job for each node, once."""
    done = cluster(*FAKE, "-k", "mnist_cnn and world_size_1", "--each-node=n[1-2],n1", "--dry-run", "--json")

    assert ["n1", "n2"] == [job["hold_to"] for job in json.loads(done.stdout)["jobs"]]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_leaving_cancels_the_jobs(cluster, signum):
    """Ctrl-C, SIGTERM and a closed terminal leave no job and no process behind, and say so."""
    process = cluster("--stack=slow", "-k", "mnist_cnn and world_size_1", start=True)
    wait_for(cluster.slow_pids.exists, process)
    process.send_signal(signum)
    output, _ = process.communicate(timeout=60)

    assert 2 == process.returncode, output
    assert "cancelled 1 jobs" in output
    assert f"told to end by {signum.name}" in output
    pids = [int(line) for line in cluster.slow_pids.read_text().split()]
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


def test_a_run_whose_submitter_was_killed_is_shown_and_cancelled_from_another_shell(cluster):
    """The ids are on disk: status shows the job running, cancel ends it, status then tells why."""
    process = cluster("--stack=slow", "-k", "mnist_cnn and world_size_1", start=True)
    wait_for(cluster.slow_pids.exists, process)
    process.kill()
    process.communicate()

    shown = cluster("status", str(cluster.latest), "--json")
    assert 0 == shown.returncode, shown.stderr
    assert ["running"] == [job["state"] for job in json.loads(shown.stdout)["jobs"]]
    cancelled = cluster("cancel", str(cluster.latest))
    assert 0 == cancelled.returncode, cancelled.stdout + cancelled.stderr
    after = cluster("status", str(cluster.latest), "--json")

    assert 11 == after.returncode
    assert ["cancelled"] == [job["end"] for job in json.loads(after.stdout)["jobs"]]
    pids = [int(line) for line in cluster.slow_pids.read_text().split()]
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]


def test_a_followed_run_can_be_cancelled_from_another_shell(cluster):
    """The follower knows that it was us, collects, and nobody follows twice."""
    process = cluster("--stack=slow", "-k", "mnist_cnn and world_size_1", start=True)
    wait_for(cluster.slow_pids.exists, process)
    twice = cluster("attach", str(cluster.latest))
    assert 11 == twice.returncode
    assert "followed by another process" in twice.stderr

    cancelled = cluster("cancel", str(cluster.latest))
    output, _ = process.communicate(timeout=60)

    assert 0 == cancelled.returncode, cancelled.stdout + cancelled.stderr
    assert 11 == process.returncode, output
    assert "`cancel` by" in output


def test_an_attached_run_is_followed_to_its_end(cluster):
    """The jobs of a killed submitter go on; whoever attaches merges them and gets the run's status."""
    process = cluster(*FAKE, "-k", "mnist_cnn and world_size_1", start=True)
    wait_for((cluster.latest / "jobs/1node-0gpu/id").exists, process)
    process.kill()
    process.communicate()

    done = cluster("attach", str(cluster.latest))

    assert 0 == done.returncode, done.stdout + done.stderr
    assert records.Run(cluster.latest.resolve()).records()


def test_a_folder_that_is_no_such_run_is_refused(cluster, tmp_path):
    """The message says what was looked for."""
    done = cluster("status", str(tmp_path))

    assert 4 == done.returncode
    assert "is no run that was submitted as jobs" in done.stderr


def test_here_becomes_pytest_with_the_sites_stack_and_submits_nothing(cluster):
    """--here is pytest itself in what one holds already, with the site's options and the caller's."""
    done = cluster(*FAKE, "--here", "-k", "mnist_cnn and world_size_1")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "test session starts" in done.stdout
    assert not (cluster.latest / "cluster.json").exists()
    assert records.Run(cluster.latest.resolve()).records()
