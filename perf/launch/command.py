"""What is run for a launch, and in which environment. Pure functions: nothing is started here, and no shell ever."""

from __future__ import annotations

import os
from collections.abc import Mapping

from perf.contract import LaunchSpec
from perf.launch.environment import MARKER, Driver, stack_environment
from perf.launch.flight import flight_recorder
from perf.launch.nccl import nccl_environment
from perf.launch.stack import Stack

WORKER = "perf.training.worker"
LOG_FOLDER = "logs"
STRATEGIES = ("single", "dp", "ddp")


def worker_command(spec: LaunchSpec, stack: Stack, spec_path: str, module: str = WORKER) -> list[str]:
    """Return the command that starts a launch.

    DDP is started by torchrun, also with one rank: the same code path whatever the world size. Every option used here
    exists since torch 2.0.

    Raises
    ------
    ValueError
        If the strategy is unknown, or the launch needs several nodes: those are started by the cluster's launcher.
    """
    if spec.strategy not in STRATEGIES:
        raise ValueError(
            f"variant {spec.variant}: strategy {spec.strategy!r} is not one of {', '.join(STRATEGIES)}"
        )
    if spec.nodes != 1:
        raise ValueError(
            f"variant {spec.variant} needs {spec.nodes} nodes; one torchrun starts ranks on its own node only, "
            f"so submit it to the cluster instead of launching it here"
        )
    if spec.strategy != "ddp":
        if spec.ranks_per_node != 1:
            raise ValueError(
                f"variant {spec.variant}: strategy {spec.strategy} has one rank, the spec has {spec.ranks_per_node}"
            )
        return [stack.python, "-m", module, spec_path]
    return [
        stack.python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nnodes=1",
        f"--nproc-per-node={spec.ranks_per_node}",
        "--max-restarts=0",
        "--log-dir",
        os.path.join(spec.out_dir, LOG_FOLDER),
        "--redirects=3",
        "-m",
        module,
        spec_path,
    ]


def worker_environment(
    spec: LaunchSpec, environ: Mapping[str, str], driver: Driver | None = None
) -> dict[str, str]:
    """Return the environment of a launch's processes.

    The caller's variables are kept (NCCL's among them: they are part of what is measured), except those of an outer
    torchrun and pytest. Threads are set explicitly, since torchrun sets OMP_NUM_THREADS=1 for two ranks and nothing
    for one, which would look like an overhead of DDP.
    """
    environment = stack_environment(environ, driver)
    environment.update(
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
        OMP_NUM_THREADS=str(spec.threads),
        MKL_NUM_THREADS=str(spec.threads),
        PYTHONUNBUFFERED="1",
    )
    environment.update(nccl_environment(spec, environment))
    environment.update(flight_recorder(spec, environment))
    environment[MARKER] = marker(spec)
    return environment


def marker(spec: LaunchSpec) -> str:
    """Return the value of `MARKER` for a launch."""
    return f"{spec.run}/{spec.launch}"
