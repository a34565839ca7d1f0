"""What a submitter hears when Slurm refuses, has forgotten, or does not answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.slurm.jobs import SACCT, SQUEUE, own_queries


def asked(jobs, *commands):
    """Run the commands, all at once, since each takes 10 s to give a controller up that is away."""
    with ThreadPoolExecutor() as pool:
        return list(
            zip(
                commands, pool.map(lambda words: jobs.cluster.run(*words, check=False), commands), strict=True
            )
        )


def questions(job):
    return [
        ["squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={SQUEUE}"],
        ["scontrol", "show", "job", str(job)],
        ["sacct", "--parsable2", "--duplicates", f"--jobs={job}", f"--format={SACCT}"],
        *own_queries(job),
    ]


def test_unknown_job(slurm, record):
    """A job that nobody knows is an error for squeue and scontrol, and an empty table for sacct."""
    answers = asked(slurm, *questions(999999), ["scancel", "999999"])
    assert [1, 1, 0] == [done.returncode for _, done in answers[:3]]
    assert "Invalid job id specified" in record(
        "unknown-job", "A job that Slurm does not know.", slurm, answers=answers
    )


def test_many_jobs_in_one_query(slurm, record):
    """One call of squeue and one of sacct answer for several jobs; squeue says nothing of an unknown one among them."""
    ended = slurm.submit("true", name="ended")
    waiting = slurm.submit("true", "--hold", name="waiting")
    running = slurm.submit("sleep 60", name="running")
    slurm.wait(ended, "COMPLETED")
    slurm.wait(running, "RUNNING")
    slurm.wait_accounted(ended, "COMPLETED")
    answers = asked(slurm, *questions(f"{ended},{waiting},{running},999999"))
    lines = answers[0][1].stdout.splitlines()
    assert sorted([ended, waiting, running]) == sorted(int(line.split("|")[0]) for line in lines)
    record("many-jobs", "Several jobs and an unknown one, in one query.", slurm, answers=answers)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("partition", ["--partition=nowhere"]),
        ("gpus", ["--gpus-per-node=8"]),
        ("option", ["--no-such-option"]),
    ],
)
def test_refused_submission(slurm, record, name, options):
    """sbatch refuses a job that the cluster can't run, with a status that is not 0 and no job number."""
    answers = asked(slurm, ["sbatch", "--parsable", *options, "--wrap=true"])
    done = answers[0][1]
    assert 0 != done.returncode
    assert not done.stdout
    record(f"refused-{name}", f"A submission that is refused: {options[-1]}.", slurm, answers=answers)


@pytest.mark.parametrize(
    ("reason", "option"),
    [
        ("PartitionTimeLimit", "--time=3-00:00:00"),
        ("PartitionNodeLimit", "--nodes=5"),
        ("PartitionConfig", "--cpus-per-task=64"),
    ],
)
def test_hopeless_submission_is_accepted(slurm, record, reason, option):
    """Slurm's default is to take a job that no node can ever run, and to let it wait with a reason."""
    job = slurm.submit("true", option, name="hopeless")
    slurm.until("hopeless", lambda: slurm.reason(job) == reason)
    record(f"pending-{reason}", f"A job that can never run: {option}.", slurm, job)


def test_dependency_on_an_unknown_job_is_ignored(slurm):
    """A job that depends on one that never existed runs at once."""
    job = slurm.submit("true", "--dependency=afterok:999999", name="unknown-dependency")
    assert "COMPLETED" == slurm.wait(job)


def test_parsable_submission(slurm, record):
    """sbatch --parsable prints the number of the job and nothing else."""
    answers = asked(slurm, ["sbatch", "--parsable", "--wrap=true"])
    assert int(answers[0][1].stdout) > 0
    record("submitted", "A submission that is accepted.", slurm, answers=answers)


def test_controller_is_away(slurm, record):
    """While the controller is stopped, squeue, scontrol and sbatch fail, sacct answers, and the job runs on."""
    job = slurm.submit("until [ -e go ]; do sleep 0.1; done", name="through")
    slurm.wait(job, "RUNNING")
    slurm.wait_accounted(job, "RUNNING")
    slurm.cluster.stop_controller()
    answers = asked(slurm, *questions(job), ["scancel", str(job)], ["sbatch", "--parsable", "--wrap=true"])
    slurm.cluster.start_controller()
    assert [1, 1, 0] == [done.returncode for _, done in answers[:3]]
    assert "Unable to contact slurm controller" in record(
        "controller-away", "The controller does not answer.", slurm, answers=answers
    )
    (slurm.folder / "go").touch()
    assert "COMPLETED" == slurm.wait(job)


def test_accounting_is_away(slurm, record):
    """While slurmdbd is stopped, sacct fails, and what happened meanwhile is told when it is back."""
    slurm.cluster.stop_accounting()
    job = slurm.submit("true", name="meanwhile")
    assert "COMPLETED" == slurm.wait(job)
    answers = asked(slurm, *questions(job))
    slurm.cluster.start_accounting()
    assert [0, 0, 1] == [done.returncode for _, done in answers[:3]]
    record("accounting-away", "The accounting database does not answer.", slurm, answers=answers)
    slurm.wait_accounted(job, "COMPLETED", seconds=120.0)


def test_accounting_is_disabled(slurm_without_accounting, record):
    """Where accounting is off, sacct says so with a status that is not 0, and the other commands know the job."""
    jobs = slurm_without_accounting
    job = jobs.submit("exit 3", name="unaccounted")
    assert "FAILED" == jobs.wait(job)
    answers = asked(jobs, *questions(job))
    assert [0, 0, 1] == [done.returncode for _, done in answers[:3]]
    assert "Slurm accounting storage is disabled" in answers[2][1].stderr
    record(
        "accounting-disabled", "A job that failed, on a cluster without accounting.", jobs, answers=answers
    )


def test_node_is_lost_and_comes_back(slurm):
    """A node that was set down takes jobs again after it was resumed."""
    slurm.cluster.set_node("n2", "down")
    slurm.cluster.wait_for_nodes(["n2"], ["down"])
    slurm.cluster.set_node("n2", "resume")
    slurm.cluster.wait_for_nodes(["n2"], ["idle"])
    job = slurm.submit("true", "--nodelist=n2", name="back")
    assert "COMPLETED" == slurm.wait(job)
