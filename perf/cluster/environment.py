"""What jobs and steps inherit: everything but what an outer job, step or launcher has left. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FINDS_CLUSTER = frozenset({"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CONF_SERVER", "LSB_CONFDIR", "LSF_ENVDIR"})
"""Without these the commands don't find their cluster."""

PREFIXES = (
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "SRUN_",
    "SALLOC_",
    "PMI_",
    "PMIX_",
    "PMI2_",
    "PALS_",
    "OMPI_",
    "MPI_LOCALRANKID",
    "MASTER_",
    "TORCHELASTIC_",
    "PET_",
    # An outer job's; LSF_ itself, which is LSF's installation, stays.
    "LSB_",
    "JSM_",
    "JSRUN_",
    "LS_JOBPID",
    "LS_SUBCWD",
)
NAMES = frozenset(
    "PMI_RANK RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE "
    "ROLE_NAME PROCID LOCALID NODEID ENVIRONMENT CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES "
    "GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK".split()
)
"""Ranks of an outer launcher, and the devices that an outer job was given: a new job has others."""

STEP_KEEPS = (
    "SLURM_JOB_*",
    "SLURM_JOBID",
    "SLURM_CLUSTER_NAME",
    "SLURM_EXPORT_ENV",
    "LSB_*",
    "LS_*",
    "JSM_*",
)
"""What a step inside a job needs beside that: which job it is part of. How its parent was bound and sized it must not
inherit; all of that stands on the step's command line."""

STEP_DROPS = ("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP*", "SLURM_JOB_GPUS")


def job_environment(environ: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Return what a new job starts with.

    Parameters
    ----------
    environ
        The caller's environment; it may itself be inside a job, a step, or a tmux that was started in one.
    keep
        Names that stay all the same, each exact or with ``*`` at its end.
    """
    return {
        name: value for name, value in environ.items() if not _belongs_to_a_job(name) or _named(name, keep)
    }


def step_environment(environ: Mapping[str, str], keep: Sequence[str] = ()) -> dict[str, str]:
    """Return what a step of the running job starts with: devices stay, since the job was given them."""
    return {
        name: value
        for name, value in environ.items()
        if not _belongs_to_a_job(name)
        or name.endswith(("_VISIBLE_DEVICES", "_DEVICE_ORDINAL"))
        or (_named(name, (*STEP_KEEPS, *keep)) and not _named(name, STEP_DROPS))
    }


def _belongs_to_a_job(name: str) -> bool:
    if name in FINDS_CLUSTER:
        return False
    return name in NAMES or name.startswith(PREFIXES)


def _named(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )
