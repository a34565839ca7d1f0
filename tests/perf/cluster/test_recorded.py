"""What perf.cluster reads from whole outputs: a real Slurm's, and LSF's after its documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.cluster.lsf_text import parse_bjobs, parse_bsub
from perf.cluster.scheduler import Phase
from perf.cluster.slurm_text import SACCT_FIELDS, SQUEUE_FORMAT, parse_sacct, parse_scontrol, parse_squeue
from tests.slurm.recording import read

RECORDED = Path(__file__).resolve().parent / "recorded"
SLURM = RECORDED / "slurm-22.05.8"
LSF = RECORDED / "lsf"

# What squeue, sacct and scontrol agree on.
SLURM_PHASES = {
    "cancelled": Phase.CANCELLED,
    "cancelled-pending": Phase.CANCELLED,
    "completed": Phase.COMPLETED,
    "deadline": Phase.TIMED_OUT,
    "failed": Phase.FAILED,
    "node-fail": Phase.NODE_FAILED,
    "node-fail-crash": Phase.NODE_FAILED,
    "out-of-memory": Phase.OUT_OF_MEMORY,
    "overlap": Phase.COMPLETED,
    "pending-PartitionConfig": Phase.PENDING,
    "pending-PartitionNodeLimit": Phase.PENDING,
    "pending-PartitionTimeLimit": Phase.PENDING,
    "pending-dependency-never": Phase.PENDING,
    "pending-held": Phase.PENDING,
    "pending-node-down": Phase.PENDING,
    "pending-partition-down": Phase.PENDING,
    "pending-priority": Phase.PENDING,
    "pending-resources": Phase.PENDING,
    "preempted": Phase.PREEMPTED,
    "requeued-completed": Phase.COMPLETED,
    "running": Phase.RUNNING,
    "signal": Phase.FAILED,
    "timeout": Phase.TIMED_OUT,
    "two-nodes": Phase.COMPLETED,
}

LSF_PHASES = {
    "done": Phase.COMPLETED,
    "exit-code": Phase.FAILED,
    "held": Phase.PENDING,
    "host-lost": Phase.NODE_FAILED,
    "killed-by-admin": Phase.CANCELLED,
    "killed-by-owner": Phase.CANCELLED,
    "killed-while-pending": Phase.CANCELLED,
    "memory-limit": Phase.OUT_OF_MEMORY,
    "pending": Phase.PENDING,
    "pending-dependency-never": Phase.PENDING,
    "pending-resources": Phase.PENDING,
    "preempted": Phase.PREEMPTED,
    "run-limit": Phase.TIMED_OUT,
    "running": Phase.RUNNING,
    "suspended-by-system": Phase.RUNNING,
    "suspended-by-user": Phase.RUNNING,
    "unknown-host": Phase.UNKNOWN,
}


def answer(path, *words):
    """Return the recorded output of the command that holds these words."""
    outputs = [
        done.stdout
        for command, done in read(path.read_text(encoding="utf-8"))
        if all(word in " ".join(command) for word in words)
    ]
    assert 1 == len(outputs), f"{path.name} holds {len(outputs)} commands with {words}"
    return outputs[0]


def from_sacct(name):
    ((seen, usage),) = parse_sacct(answer(SLURM / f"{name}.txt", "sacct", ",".join(SACCT_FIELDS))).values()
    return seen, usage


def from_squeue(name):
    (seen,) = parse_squeue(answer(SLURM / f"{name}.txt", "squeue", f"--format={SQUEUE_FORMAT}")).values()
    return seen


def from_scontrol(name):
    (seen,) = parse_scontrol(answer(SLURM / f"{name}.txt", "scontrol --oneliner")).values()
    return seen


@pytest.mark.parametrize(("name", "phase"), SLURM_PHASES.items())
def test_slurms_commands_agree_on_the_phase(name, phase):
    """squeue, sacct and scontrol give a job the same phase; of one that waits sacct may not have heard yet."""
    assert (phase, phase) == (from_squeue(name).phase, from_scontrol(name).phase)
    accounted = parse_sacct(answer(SLURM / f"{name}.txt", "sacct", ",".join(SACCT_FIELDS)))
    phases = [seen.phase for seen, _ in accounted.values()]
    assert [phase] == phases or (phase is Phase.PENDING and not phases)


def test_every_job_that_was_recorded_is_read():
    """A recording that no test looks at would be left behind when a format changes."""
    special = {"requeued-pending", "node-fail-requeued", "out-of-memory-step", "accounting-provisional"}
    one_job = {
        path.stem for path in SLURM.glob("*.txt") if "$ sbatch --chdir" in path.read_text(encoding="utf-8")
    }
    assert one_job == SLURM_PHASES.keys() | special


@pytest.mark.parametrize("name", ["requeued-pending", "node-fail-requeued"])
def test_requeued_job_waits_for_the_controller(name):
    """A job that was requeued is pending for the controller, and has not ended in a good way for the database."""
    assert Phase.PENDING is from_squeue(name).phase
    assert Phase.COMPLETED is not from_sacct(name)[0].phase


def test_status_and_signal_of_a_script():
    """The script's own end is told apart from a signal."""
    assert (3, 0) == (from_sacct("failed")[0].status, from_sacct("failed")[0].signal)
    assert (0, 9) == (from_sacct("signal")[0].status, from_sacct("signal")[0].signal)
    assert (3, 0) == (
        from_scontrol("accounting-disabled").status,
        from_scontrol("accounting-disabled").signal,
    )


def test_usage_of_a_job_on_two_nodes():
    """Nodes, cores, GPUs and wall time come from sacct."""
    usage = from_sacct("two-nodes")[1]
    assert ("n1,n2", 2, 4) == (usage.nodes, usage.cores, usage.gpus)
    assert usage.wall_seconds is not None


def test_unknown_job_is_left_out():
    """Nothing is read for a job that nobody knows, and the others in the query are."""
    assert {} == parse_sacct(answer(SLURM / "unknown-job.txt", "sacct", ",".join(SACCT_FIELDS)))
    assert {} == parse_squeue(answer(SLURM / "unknown-job.txt", "squeue", f"--format={SQUEUE_FORMAT}"))
    several = parse_squeue(answer(SLURM / "many-jobs.txt", "squeue", f"--format={SQUEUE_FORMAT}"))
    assert {Phase.COMPLETED, Phase.PENDING, Phase.RUNNING} == {seen.phase for seen in several.values()}


@pytest.mark.parametrize(("name", "phase"), LSF_PHASES.items())
def test_lsfs_states(name, phase):
    """bjobs' states and termination reasons give the phase."""
    ((seen, _),) = parse_bjobs(answer(LSF / f"{name}.txt", "-noheader")).values()
    assert phase is seen.phase


def test_lsfs_accepted_and_refused_submissions():
    """The number of a job is read whichever queue it went to, and nothing from a refusal."""
    accepted = read((LSF / "submitted.txt").read_text(encoding="utf-8"))
    assert ["4001", "4002"] == [parse_bsub(done.stdout) for _, done in accepted]
    refused = read((LSF / "refused.txt").read_text(encoding="utf-8"))
    assert [None] * 3 == [parse_bsub(done.stdout + done.stderr) for _, done in refused]
