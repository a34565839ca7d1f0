"""What jobs and steps inherit."""

from __future__ import annotations

from perf.cluster.environment import job_environment, step_environment

OUTER = {
    "PATH": "/bin",
    "HOME": "/home/x",
    "NCCL_DEBUG": "INFO",
    "LSF_SERVERDIR": "/lsf",
    "LSF_ENVDIR": "/lsf/conf",
    "SLURM_CONF": "/etc/slurm.conf",
    "SLURM_CLUSTERS": "a",
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "n[1-2]",
    "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
    "SLURM_CPUS_PER_TASK": "1",
    "SLURM_MEM_PER_CPU": "1",
    "SLURM_GPUS_PER_NODE": "1",
    "SLURM_TRES_PER_TASK": "cpu:1",
    "SLURM_STEP_ID": "3",
    "SLURM_PROCID": "0",
    "SBATCH_EXPORT": "NONE",
    "SBATCH_PARTITION": "wrong",
    "SRUN_CPUS_PER_TASK": "1",
    "PMI_RANK": "0",
    "PMIX_NAMESPACE": "x",
    "MASTER_ADDR": "n1",
    "MASTER_PORT": "29500",
    "RANK": "3",
    "WORLD_SIZE": "4",
    "TORCHELASTIC_RUN_ID": "x",
    "CUDA_VISIBLE_DEVICES": "3",
    "LSB_JOBID": "5",
    "SLURM_SITE_THING": "y",
}


def test_a_job_inherits_nothing_of_an_outer_one():
    """Binding, sizes, ranks and devices of an outer job are gone; what finds the cluster and the rest is there."""
    kept = job_environment(OUTER)

    assert {
        "PATH",
        "HOME",
        "NCCL_DEBUG",
        "LSF_SERVERDIR",
        "LSF_ENVDIR",
        "SLURM_CONF",
        "SLURM_CLUSTERS",
    } == set(kept)


def test_a_site_can_keep_more():
    """Names are exact, or a beginning with a star."""
    kept = job_environment(OUTER, ["SLURM_SITE_*", "SBATCH_PARTITION"])

    assert {"SLURM_SITE_THING", "SBATCH_PARTITION"} <= set(kept)
    assert "SLURM_STEP_ID" not in kept


def test_a_step_knows_its_job_and_devices_and_no_sizes():
    """srun finds the job and its nodes; how the parent was bound and sized is on srun's command line instead."""
    kept = step_environment(OUTER)

    assert {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "CUDA_VISIBLE_DEVICES", "LSB_JOBID", "SLURM_CONF"} <= set(
        kept
    )
    dropped = {
        "SLURM_CPU_BIND", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU", "SLURM_GPUS_PER_NODE", "SLURM_TRES_PER_TASK",
        "SLURM_STEP_ID", "SLURM_PROCID", "SRUN_CPUS_PER_TASK", "PMI_RANK", "MASTER_PORT", "RANK",
    }  # fmt: skip
    assert not dropped & set(kept)
