"""What is run for a launch, and in which environment. Pure functions: nothing is started here, and no shell ever."""

from __future__ import annotations

import os
from collections.abc import Mapping

from perf.contract import NSYS_FILE, LaunchSpec
from perf.launch.environment import MARKER, Driver, stack_environment
from perf.launch.flight import flight_recorder
from perf.launch.nccl import nccl_environment
from perf.launch.place import HERE, NODE, Place
from perf.launch.stack import Stack

WORKER = "perf.training.worker"
TORCHRUN = "torch.distributed.run"
LOG_FOLDER = "logs"
STRATEGIES = ("single", "dp", "ddp")


def worker_command(
    spec: LaunchSpec, stack: Stack, spec_path: str, module: str = WORKER, place: Place = HERE
) -> list[str]:
    """Return the command that starts a launch: the step, the stack's own shell and wrapper, its Python, the worker.

    DDP is started by torchrun, also with one rank: the same code path whatever the world size. Every option used here
    exists since torch 2.0.

    Raises
    ------
    ValueError
        If the strategy is unknown, or the launch needs more nodes than the place has.
    """
    if spec.strategy not in STRATEGIES:
        raise ValueError(
            f"variant {spec.variant}: strategy {spec.strategy!r} is not one of {', '.join(STRATEGIES)}"
        )
    if spec.nodes > place.nodes:
        raise ValueError(
            f"variant {spec.variant} needs {spec.nodes} nodes and {place.nodes} can be had here; "
            f"submit it to the cluster: python -m perf.cluster --site=FILE"
        )
    start = [
        *place.step(spec.nodes, stack.step_options),
        *stack.before(place.node_number()),
        *(nsys_command(spec) if spec.trace == "nsys" else ()),
        stack.python,
        "-m",
    ]
    if spec.strategy != "ddp":
        if spec.world_size != 1:
            raise ValueError(
                f"variant {spec.variant}: strategy {spec.strategy} has one rank, the spec has {spec.world_size}"
            )
        return [*start, module, spec_path]
    return [
        *start,
        TORCHRUN,
        *_meeting(spec, place),
        f"--nproc-per-node={spec.ranks_per_node}",
        "--max-restarts=0",
        "--log-dir",
        log_folder(spec, NODE),
        "--redirects=3",
        "-m",
        module,
        spec_path,
    ]


def nsys_command(spec: LaunchSpec) -> list[str]:
    """Return what puts a launch under Nsight Systems: it captures between the marks of the worker, and nothing else."""
    return [
        "nsys",
        "profile",
        "--trace=cuda,nvtx,cublas",
        "--sample=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--force-overwrite=true",
        f"--output={os.path.join(spec.out_dir, NSYS_FILE)}",
    ]


def log_folder(spec: LaunchSpec, node: int | str) -> str:
    """Return where torchrun keeps the ranks' logs: it numbers them on each node anew, so each has a folder."""
    inside = LOG_FOLDER if spec.nodes == 1 else os.path.join(LOG_FOLDER, f"node-{node}")
    return os.path.join(spec.out_dir, inside)


def _meeting(spec: LaunchSpec, place: Place) -> list[str]:
    """Return how the torchruns of all nodes meet.

    The static rendezvous, since it numbers ranks by node: rank 0 is on the first node, whose host and port are known,
    and a rank's log can be found. c10d numbers nodes by address, and looks at host names to find out who listens.
    """
    if spec.nodes == 1:
        return ["--standalone", "--nnodes=1"]
    host, port = place.endpoint(spec.launch)
    return [
        f"--nnodes={spec.nodes}",
        f"--node-rank={NODE}",
        f"--master-addr={host}",
        f"--master-port={port}",
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
