"""The allocation that a process is in, and launches as its steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.cluster.allocation import (
    FIRST_PORT,
    PORTS,
    Allocation,
    Steps,
    find_place,
    lsf_allocation,
    slurm_allocation,
)
from perf.cluster.sites import SiteError, load_site
from perf.launch.place import HERE

ROOT = Path(__file__).parents[3]
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_CPUS_PER_NODE": "64(x2)",
    "SLURM_GPUS_ON_NODE": "4",
}


def test_a_slurm_job_says_what_it_has():
    """Nodes, cores and GPUs of each come from its variables."""
    assert Allocation("7", 2, 64, 4) == slurm_allocation(SLURM)
    assert None is slurm_allocation({"SLURM_CONF": "/x"})
    assert (
        8
        == slurm_allocation(
            {"SLURM_JOB_ID": "7", "SLURM_NNODES": "1", "SLURM_JOB_CPUS_PER_NODE": "8,4"}
        ).cores
    )
    with pytest.raises(SiteError, match="SLURM_JOB_NUM_NODES"):
        slurm_allocation({"SLURM_JOB_ID": "7"})


def test_an_lsf_job_says_which_hosts_it_has(site):
    """With jsrun the first host is the launch node and does not count."""
    jsrun = load_site(ROOT / "docs" / "sites" / "lsf-jsrun.toml")
    variables = {"LSB_JOBID": "5", "LSB_MCPU_HOSTS": "batch1 1 h1 42 h2 42", "CUDA_VISIBLE_DEVICES": "0,1"}

    assert Allocation("5", 2, 42, 2, ("h1", "h2")) == lsf_allocation(jsrun, variables)
    assert Allocation("5", 3, 1, 2, ("batch1", "h1", "h2")) == lsf_allocation(site("lsf"), variables)
    with pytest.raises(SiteError, match="LSB_MCPU_HOSTS"):
        lsf_allocation(jsrun, {"LSB_JOBID": "5", "LSB_MCPU_HOSTS": "batch1 1"})


def test_outside_of_a_job_launches_run_here(site):
    """So they do without a site file, and on a machine without a scheduler."""
    assert HERE is find_place(None, SLURM)
    assert HERE is find_place(site(), {})
    assert HERE is find_place(site("local", node="cores = 4"), SLURM)
    assert 2 == find_place(site(), SLURM).nodes


def test_a_slurm_step_overlaps_has_its_cores_and_sees_all_gpus_of_its_nodes(site):
    """One task a node, cores always named, GPUs by node, everything ended with the first bad exit."""
    words = Steps(site(scheduler='step_options = ["--mpi=none"]'), Allocation("7", 2, 64, 4)).step(
        1, ("--container-image=/a b",)
    )

    assert "srun" == words[0]
    wanted = {"--overlap", "--ntasks=1", "--ntasks-per-node=1", "--cpus-per-task=64", "--gpus-per-node=4"}
    assert wanted | {"--kill-on-bad-exit=1", "--nodes=1", "--export=ALL"} <= set(words)
    assert ["--mpi=none", "--container-image=/a b"] == words[-2:]
    assert not [word for word in words if "per-task" in word and "gpu" in word]


def test_a_step_on_nodes_without_gpus_asks_for_none(site):
    """`--gpus-per-node=0` is an error in some versions."""
    assert not [word for word in Steps(site(), Allocation("7", 2, 4, 0)).step(2) if "gpu" in word]


def test_jsrun_and_blaunch_start_one_task_a_host(site):
    """A single launch under blaunch needs no step: the job script is on its host."""
    jsrun = load_site(ROOT / "docs" / "sites" / "lsf-jsrun.toml")
    allocation = Allocation("5", 2, 42, 6, ("h1", "h2"))

    assert [
        "jsrun",
        "--nrs=2",
        "--rs_per_host=1",
        "--tasks_per_rs=1",
        "--cpu_per_rs=42",
        "--gpu_per_rs=6",
    ] == Steps(jsrun, allocation).step(2)
    assert ["blaunch", "-no-shell", "-z", "h1 h2"] == Steps(site("lsf"), allocation).step(2)
    assert [] == Steps(site("lsf"), allocation).step(1)


def test_the_nodes_meet_on_a_free_port_of_the_first(site):
    """Never a fixed port; from a launch node it is computed, the same for all that ask and another for each launch."""
    host, port = Steps(site(), Allocation("7", 2, 64, 4)).endpoint("a")
    assert host
    assert 0 < port < 65536
    jsrun = Steps(
        load_site(ROOT / "docs" / "sites" / "lsf-jsrun.toml"), Allocation("5", 2, 42, 6, ("h1", "h2"))
    )

    assert jsrun.endpoint("a") == jsrun.endpoint("a")
    assert "h1" == jsrun.endpoint("a")[0]
    assert len({jsrun.endpoint(f"launch {number}")[1] for number in range(50)}) > 40
    assert all(FIRST_PORT <= jsrun.endpoint(str(n))[1] < FIRST_PORT + PORTS for n in range(50))


def test_a_step_inherits_its_job_and_no_binding(site):
    """The variables that made every rank run on one core are gone."""
    kept = Steps(site(), Allocation("7", 2, 64, 4)).environment({**SLURM, "SLURM_CPU_BIND": "x", "A": "b"})

    assert ("7", "b") == (kept["SLURM_JOB_ID"], kept["A"])
    assert "SLURM_CPU_BIND" not in kept
