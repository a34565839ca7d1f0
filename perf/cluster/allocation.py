"""The allocation that this process is in: which nodes it has, and how a launch becomes a step on them."""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from perf.cluster.environment import step_environment
from perf.cluster.sites import Site, SiteError
from perf.cluster.templates import fill
from perf.launch.node_limits import free_port
from perf.launch.place import HERE, Place
from perf.whole import whole

FIRST_PORT = 20000
PORTS = 12000
"""Below 32768, from where Linux takes ports for outgoing connections. A fixed one, such as 29500, belongs to whoever
came first."""

LAUNCH_NODES = frozenset({"jsrun"})
"""Commands that are given on a node which is not one of the allocation's: what this node has says nothing then."""


@dataclass(frozen=True)
class Allocation:
    """What a job was given: `gpus` and `cores` of each node. `hosts` are the nodes' names where the job tells them."""

    job: str
    nodes: int
    cores: int | None
    gpus: int
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Steps:
    """A `perf.launch.place.Place` made of an allocation: launches are steps of the job."""

    site: Site
    allocation: Allocation

    @property
    def nodes(self) -> int:
        """Nodes of the allocation."""
        return self.allocation.nodes

    @property
    def cores(self) -> int | None:
        """Cores of each node that the job was given."""
        return self.allocation.cores

    def step(self, nodes: int, options: tuple[str, ...] = ()) -> list[str]:
        """Return the words that start one task on each of the first `nodes` nodes."""
        scheduler, allocation = self.site.scheduler, self.allocation
        command = scheduler.step_command
        cores = allocation.cores or self.site.node.cores
        if command == "srun":
            amounts = {"nodes": nodes, "gpus": allocation.gpus, "cores": cores, "slots": nodes}
            return [
                "srun",
                # Without it a second step (and the batch script's own processes) waits: 'step creation temporarily
                # disabled'.
                "--overlap",
                f"--nodes={nodes}",
                f"--ntasks={nodes}",
                "--ntasks-per-node=1",
                # Always: what srun inherits from the job's --cpus-per-task changed in 22.05 and again in 23.11.
                f"--cpus-per-task={cores}",
                *(fill(scheduler.gpus_asked, amounts) if allocation.gpus else []),
                "--mem=0",
                # One dead rank must not let the others wait until the time limit.
                "--kill-on-bad-exit=1",
                "--export=ALL",
                *(["--relative=0"] if nodes < allocation.nodes else []),
                *scheduler.step_options,
                *options,
            ]
        if command == "jsrun":
            gpus = allocation.gpus or self.site.node.gpus
            sets = [f"--nrs={nodes}", "--rs_per_host=1", "--tasks_per_rs=1"]
            return [
                "jsrun",
                *sets,
                f"--cpu_per_rs={cores}",
                f"--gpu_per_rs={gpus}",
                *scheduler.step_options,
                *options,
            ]
        if command == "blaunch" and nodes > 1:
            hosts = " ".join(allocation.hosts[:nodes])
            return ["blaunch", "-no-shell", "-z", hosts, *scheduler.step_options, *options]
        return []

    def node_number(self) -> str:
        """Return where a task finds its node's number."""
        return {
            "srun": "$SLURM_NODEID",
            "jsrun": "$JSM_NAMESPACE_RANK",
            # blaunch counts its tasks from 1, and sets nothing for a process that it did not start.
            "blaunch": "$((${LSF_PM_TASKID:-1} - 1))",
        }.get(self.site.scheduler.step_command, "0")

    def endpoint(self, launch: str) -> tuple[str, int]:
        """Return where the first node's torchrun listens.

        The job script runs on the first node, so a port that is free here is free there. jsrun is given on a launch
        node instead; a port is then computed from job and launch.
        """
        if self.site.scheduler.step_command in LAUNCH_NODES:
            seed = zlib.crc32(f"{self.allocation.job} {launch}".encode())
            return self.allocation.hosts[0], FIRST_PORT + seed % PORTS
        port, problem = free_port()
        if port is None:
            raise OSError(f"no TCP port can be opened here ({problem}); the nodes' ranks can't meet")
        return socket.gethostname(), port

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return `environ` without the sizes and the binding of whatever this process was started by."""
        return step_environment(environ, self.site.scheduler.keep)


def find_place(site: Site | None, environ: Mapping[str, str] | None = None) -> Place:
    """Return where launches of this process run: as steps where it is in a job of the site's scheduler.

    Raises
    ------
    SiteError
        If it is in a job that does not say which nodes it has.
    """
    variables = os.environ if environ is None else environ
    if site is None or site.scheduler.kind == "local":
        return HERE
    allocation = (
        slurm_allocation(variables) if site.scheduler.kind == "slurm" else lsf_allocation(site, variables)
    )
    return HERE if allocation is None else Steps(site, allocation)


def slurm_allocation(environ: Mapping[str, str]) -> Allocation | None:
    """Return the Slurm job that the variables describe; None outside of one. Pure.

    Raises
    ------
    SiteError
        If they name a job and not its size.
    """
    job = environ.get("SLURM_JOB_ID", "")
    if not job:
        return None
    nodes = whole(environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES") or "")
    if nodes is None:
        raise SiteError(
            f"SLURM_JOB_ID is {job}, but SLURM_JOB_NUM_NODES does not say how many nodes the job has"
        )
    # "64(x2)" or "64,48": the first node's, which a launch on several is held to as well.
    cores = re.match(r"\d+", environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
    return Allocation(
        job=job,
        nodes=nodes,
        cores=int(cores[0]) if cores else None,
        gpus=_gpus(environ),
    )


def lsf_allocation(site: Site, environ: Mapping[str, str]) -> Allocation | None:
    """Return the LSF job that the variables describe; None outside of one. Pure.

    Raises
    ------
    SiteError
        If they name a job and not its hosts.
    """
    job = environ.get("LSB_JOBID", "")
    if not job:
        return None
    # "launch1 1 n1 42 n2 42": each host with its slots; with jsrun the first is the launch node.
    words = environ.get("LSB_MCPU_HOSTS", "").split()
    hosts = list(zip(words[::2], words[1::2], strict=False))
    if site.scheduler.step_command in LAUNCH_NODES:
        hosts = hosts[1:]
    slots = [whole(count) for _, count in hosts]
    if not slots or None in slots:
        raise SiteError(f"LSB_JOBID is {job}, but LSB_MCPU_HOSTS does not say which hosts the job has")
    return Allocation(
        job=job,
        nodes=len(hosts),
        cores=site.node.cores if site.scheduler.step_command in LAUNCH_NODES else slots[0],
        gpus=_gpus(environ),
        hosts=tuple(host for host, _ in hosts),
    )


def _gpus(environ: Mapping[str, str]) -> int:
    on_node = whole(environ.get("SLURM_GPUS_ON_NODE", ""))
    if on_node is not None:
        return on_node
    for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        if environ.get(name):
            return len(environ[name].split(","))
    return 0
