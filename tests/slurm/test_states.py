"""Every state that Slurm can be brought into for real, and what each command says of it."""

from __future__ import annotations

import pytest

TWO_STEPS = """
srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=2 bash -c 'touch first; until [ -e second ]; do sleep 0.1; done' &
srun --overlap --nodes=1 --ntasks=1 --cpus-per-task=2 bash -c 'touch second; until [ -e first ]; do sleep 0.1; done' &
wait %1 && wait %2
"""
"""Each step ends only when the other one has begun."""


def test_job_on_one_node_completes(slurm, record):
    """A job that ends with 0 is COMPLETED for the controller and for the database."""
    job = slurm.submit("srun --cpus-per-task=2 hostname", "--cpus-per-task=2", name="completed")
    assert "COMPLETED" == slurm.wait(job)
    slurm.wait_accounted(job, "COMPLETED")
    assert f"{slurm.cluster.layout.host}\n" == slurm.output(job)
    assert "|COMPLETED|0:0|" in record("completed", "A job that completed.", slurm, job)


def test_job_on_two_nodes_runs_on_both(slurm, record):
    """A step with one task a node runs on each node of the job."""
    body = "srun --ntasks-per-node=1 --cpus-per-task=1 bash -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'"
    job = slurm.submit(body, "--nodes=2", "--gpus-per-node=2", name="two-nodes")
    assert "COMPLETED" == slurm.wait(job)
    slurm.wait_accounted(job, "COMPLETED")
    assert ["n1 0,1", "n2 0,1"] == sorted(slurm.output(job).splitlines())
    assert "gres/gpu=4" in record(
        "two-nodes", "A job on two nodes, with two GPUs a node, that completed.", slurm, job
    )


def test_two_overlapping_steps_run_at_once(slurm, record):
    """With --overlap a second step starts while the first one holds every core of the job."""
    job = slurm.submit(TWO_STEPS, "--cpus-per-task=2", name="overlap")
    assert "COMPLETED" == slurm.wait(job)
    slurm.wait_accounted(job, "COMPLETED")
    record("overlap", "A job with two steps that overlapped, and completed.", slurm, job)


def test_step_without_overlap_waits(slurm, record):
    """Without --overlap the second step waits for the first one and says so."""
    body = "srun --cpus-per-task=2 sleep 4 &\nsleep 1\nsrun --cpus-per-task=2 true\nwait"
    job = slurm.submit(body, "--cpus-per-task=2", name="no-overlap")
    assert "COMPLETED" == slurm.wait(job)
    assert "step creation temporarily disabled, retrying (Requested nodes are busy)" in slurm.output(job)


def test_failed_job(slurm, record):
    """A script that ends with 3 is FAILED with 3:0."""
    job = slurm.submit("srun --cpus-per-task=1 false\nexit 3", name="failed")
    assert "FAILED" == slurm.wait(job)
    slurm.wait_accounted(job, "FAILED")
    assert "|FAILED|3:0|" in record(
        "failed", "A job whose script ended with 3, after a step ended with 1.", slurm, job
    )


def test_job_killed_by_a_signal(slurm, record):
    """A script that dies of SIGKILL is FAILED with 0:9."""
    job = slurm.submit("kill -KILL $$", name="signal")
    assert "FAILED" == slurm.wait(job)
    slurm.wait_accounted(job, "FAILED")
    assert "|FAILED|0:9|" in record("signal", "A job whose script died of SIGKILL.", slurm, job)


def test_pending_job_says_why(slurm, record):
    """A job that asks for what another one holds waits with the reason Resources."""
    first = slurm.submit("sleep 60", "--nodes=2", "--exclusive", name="running")
    slurm.wait(first, "RUNNING")
    second = slurm.submit("true", "--nodes=2", name="pending")
    third = slurm.submit("true", "--nodes=1", name="pending-behind")
    slurm.until("waiting for resources", lambda: slurm.reason(second) == "Resources")
    slurm.until("waiting behind another", lambda: slurm.reason(third) == "Priority")
    slurm.wait_accounted(first, "RUNNING")
    record("running", "A job that runs on two nodes.", slurm, first)
    record("pending-resources", "A job that waits for nodes.", slurm, second)
    record("pending-priority", "A job that waits behind another one.", slurm, third)


def test_held_job(slurm, record):
    """A job submitted with --hold waits for its user."""
    job = slurm.submit("true", "--hold", name="held")
    slurm.until("held", lambda: slurm.reason(job) == "JobHeldUser")
    record("pending-held", "A job that its user holds.", slurm, job)


def test_dependency_that_never_runs(slurm, record):
    """A job that waits for the success of one that failed stays pending with DependencyNeverSatisfied."""
    failed = slurm.submit("exit 1", name="failed")
    assert "FAILED" == slurm.wait(failed)
    job = slurm.submit("true", f"--dependency=afterok:{failed}", name="never")
    slurm.until("hopeless", lambda: slurm.reason(job) == "DependencyNeverSatisfied")
    assert "PENDING" == slurm.state(job)
    record("pending-dependency-never", "A job whose dependency can't be fulfilled any more.", slurm, job)


def test_job_for_a_node_that_is_down(slurm, record):
    """A job that names a node that is down stays pending and says that the node is not available."""
    slurm.cluster.set_node("n2", "down", "fan broken")
    job = slurm.submit("true", "--nodelist=n2", name="no-node")
    slurm.until("not available", lambda: slurm.reason(job).startswith(("ReqNodeNotAvail", "Nodes_required")))
    record("pending-node-down", "A job that asks for a node that an administrator set down.", slurm, job)


def test_job_in_a_partition_that_is_down(slurm, record):
    """A job in a partition that is down stays pending with PartitionDown."""
    slurm.cluster.run("scontrol", "update", "PartitionName=urgent", "State=DOWN")
    try:
        job = slurm.submit("true", "--partition=urgent", name="partition")
        slurm.until("waiting for the partition", lambda: slurm.reason(job) == "PartitionDown")
        record("pending-partition-down", "A job in a partition that is down.", slurm, job)
    finally:
        slurm.cluster.run("scontrol", "update", "PartitionName=urgent", "State=UP")


def test_running_job_is_cancelled(slurm, record):
    """A running job that somebody cancels is CANCELLED, and sacct says by whom."""
    job = slurm.submit("srun --cpus-per-task=1 sleep 60", name="cancelled")
    slurm.wait(job, "RUNNING")
    slurm.until("a step runs", lambda: len(slurm.accounted(job)) == 3)
    slurm.cluster.run("scancel", str(job))
    assert "CANCELLED" == slurm.wait(job)
    slurm.wait_accounted(job, "CANCELLED")
    assert "|CANCELLED by 0|0:0|" in record("cancelled", "A running job that somebody cancelled.", slurm, job)


def test_pending_job_is_cancelled(slurm, record):
    """A job that is cancelled before it ran is CANCELLED without nodes."""
    job = slurm.submit("true", "--hold", name="cancelled-pending")
    slurm.cluster.run("scancel", str(job))
    assert "CANCELLED" == slurm.wait(job)
    slurm.wait_accounted(job, "CANCELLED")
    record("cancelled-pending", "A job that was cancelled before it ran.", slurm, job)


def test_job_runs_out_of_time(slurm, record):
    """A job that runs longer than its limit is TIMEOUT."""
    job = slurm.submit("srun --cpus-per-task=1 sleep 600", "--time=1", name="timeout")
    slurm.wait(job, "RUNNING")
    # One minute is the shortest limit; an administrator can bring the end nearer. Slurm looks every 30 s.
    slurm.cluster.run("scontrol", "update", f"JobId={job}", "EndTime=now+1")
    assert "TIMEOUT" == slurm.wait(job, seconds=120.0)
    slurm.wait_accounted(job, "TIMEOUT")
    assert "DUE TO TIME LIMIT" in slurm.output(job)
    record("timeout", "A job that ran out of time.", slurm, job)


def test_requeued_job_runs_again(slurm, record):
    """A job that is requeued waits, keeps its number, runs again, and both its runs are in the database."""
    job = slurm.submit('[ "$SLURM_RESTART_COUNT" ] && exit 0\nsleep 60', "--requeue", name="requeued")
    slurm.wait(job, "RUNNING")
    slurm.cluster.run("scontrol", "requeue", str(job))
    slurm.wait(job, "PENDING")
    slurm.wait_accounted(job, "REQUEUED")
    slurm.until("counted", lambda: slurm.fields(job)["Restarts"] == "1")
    record("requeued-pending", "A job that was requeued and waits.", slurm, job)
    # Slurm lets a requeued job wait for two minutes. Not at once: in the second in which a node killed a job it refuses
    # to start it ("already killed, do not launch batch job"), and the job is FAILED.
    slurm.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+2")
    assert "COMPLETED" == slurm.wait(job)
    slurm.wait_accounted(job, "COMPLETED")
    record("requeued-completed", "A job that was requeued, ran again and completed.", slurm, job)


def test_preempted_job(slurm, record):
    """A job that is thrown out by one of a better partition is PREEMPTED."""
    job = slurm.submit("sleep 60", "--nodes=2", "--exclusive", "--no-requeue", name="preempted")
    slurm.wait(job, "RUNNING")
    urgent = slurm.submit("true", "--partition=urgent", "--nodes=2", "--exclusive", name="urgent")
    assert "PREEMPTED" == slurm.wait(job)
    assert "COMPLETED" == slurm.wait(urgent)
    slurm.wait_accounted(job, "PREEMPTED")
    record("preempted", "A job that one of a better partition threw out.", slurm, job)


def test_node_set_down_under_a_job(slurm, record):
    """A job whose node is set down is NODE_FAIL."""
    job = slurm.submit("srun --cpus-per-task=1 sleep 60", "--nodes=2", "--no-requeue", name="node-down")
    slurm.wait(job, "RUNNING")
    slurm.until("a step runs", lambda: len(slurm.accounted(job)) == 3)
    slurm.cluster.set_node("n2", "down", "fan broken")
    assert "NODE_FAIL" == slurm.wait(job)
    slurm.wait_accounted(job, "NODE_FAIL")
    record("node-fail", "A job whose second node an administrator set down.", slurm, job)


def test_node_that_dies_under_a_job(slurm, record):
    """A job whose node stops answering is NODE_FAIL, after the time that the controller gives a node."""
    job = slurm.submit("sleep 60", "--nodelist=n2", "--no-requeue", name="node-dies")
    slurm.wait(job, "RUNNING")
    slurm.cluster.crash_node("n2")
    assert "NODE_FAIL" == slurm.wait(job, seconds=120.0)
    slurm.wait_accounted(job, "NODE_FAIL")
    record("node-fail-crash", "A job whose node stopped answering.", slurm, job)


def test_node_that_dies_under_a_job_that_may_run_again(slurm, record):
    """A job that may be requeued waits again after its node was set down."""
    job = slurm.submit("sleep 60", "--nodelist=n2", "--requeue", name="node-down-requeue")
    slurm.wait(job, "RUNNING")
    slurm.cluster.set_node("n2", "down", "fan broken")
    slurm.wait(job, "PENDING")
    slurm.wait_accounted(job, "NODE_FAIL")
    record("node-fail-requeued", "A job that was requeued after its node was set down.", slurm, job)


def test_step_runs_out_of_memory(slurm, record):
    """A step that takes more memory than the job asked for is OUT_OF_MEMORY."""
    if not slurm.cluster.layout.cgroup:
        pytest.skip(
            "no control groups v1 for memory that this process may write, so Slurm limits no memory here"
        )
    body = "srun --cpus-per-task=1 python3 -c 'x = bytearray(300 << 20); print(len(x))'"
    job = slurm.submit(body, "--mem=100M", name="memory")
    assert "FAILED" == slurm.wait(job)
    slurm.wait_accounted(job, "OUT_OF_MEMORY")
    record(
        "out-of-memory-step",
        "A job whose step ran out of memory; its script ended with srun's 1.",
        slurm,
        job,
    )


def test_batch_script_runs_out_of_memory(slurm, record):
    """A job whose script itself takes too much memory is OUT_OF_MEMORY as a whole."""
    if not slurm.cluster.layout.cgroup:
        pytest.skip(
            "no control groups v1 for memory that this process may write, so Slurm limits no memory here"
        )
    job = slurm.submit("python3 -c 'x = bytearray(300 << 20); print(len(x))'", "--mem=100M", name="memory")
    assert "OUT_OF_MEMORY" == slurm.wait(job)
    slurm.wait_accounted(job, "OUT_OF_MEMORY")
    record("out-of-memory", "A job whose script ran out of memory.", slurm, job)


def test_deadline_that_can_not_be_met(slurm, record):
    """A pending job whose deadline passes is DEADLINE."""
    first = slurm.submit("sleep 120", "--nodes=2", "--exclusive", name="first")
    slurm.wait(first, "RUNNING")
    job = slurm.submit("true", "--nodes=2", "--deadline=now+70", "--time=1", name="deadline")
    assert "DEADLINE" == slurm.wait(job, seconds=150.0)
    slurm.wait_accounted(job, "DEADLINE")
    record("deadline", "A job that could not end before its deadline.", slurm, job)
