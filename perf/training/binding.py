"""Which cores a rank runs on: those beside its GPU, where they suffice for every rank there, or as many as asked."""

from __future__ import annotations

import os
from typing import Any, Optional

import torch

from perf.contract import LaunchSpec
from perf.training.identity import Identity
from perf.training.settings import NotInForce


def bind(spec: LaunchSpec, identity: Identity, root: str = "/") -> dict[str, Any]:
    """Bind this rank, and so its loader workers, and return what the record says of it.

    Returns
    -------
    dict
        ``core_ids``, the cores that it may use afterwards; ``numa_nodes``, the NUMA nodes that these belong to (empty
        where the system does not say); ``numa_binding``, the node that it was bound to, or null; ``numa_reason``, why
        it was not, '' if it was.
    """
    nodes = node_cores(root)
    allowed = os.sched_getaffinity(0)
    node, reason = choose(
        spec, nodes, allowed, [gpu_node(i, root) for i in _ranks_gpus(spec, identity)], identity
    )
    if node is not None:
        os.sched_setaffinity(0, allowed & nodes[node])
    return _told(nodes, node, reason)


def tie(spec: LaunchSpec, identity: Identity, root: str = "/") -> dict[str, Any]:
    """Tie this rank, and so its loader workers, to as many cores as the spec says, beside those of the other ranks.

    Returns what `bind` returns.

    Raises
    ------
    NotInForce
        If fewer cores are allowed than the ranks of this node are to be tied to.
    """
    allowed = sorted(os.sched_getaffinity(0))
    size = spec.tied_cores * spec.devices_per_rank
    mine = allowed[identity.local_rank * size : (identity.local_rank + 1) * size]
    if len(mine) < size:
        raise NotInForce(
            f"each of {spec.ranks_per_node} ranks was to be tied to {size} cores, and {len(allowed)} are allowed on "
            f"{identity.host}. Allow more (srun --cpus-per-task, taskset), or ask for fewer"
        )
    os.sched_setaffinity(0, mine)
    return _told(node_cores(root), None, f"tied to {size} cores, as was asked for")


def _told(nodes: dict[int, set[int]], node: Optional[int], reason: str) -> dict[str, Any]:
    """Return what a record says of a rank's cores, as they are now."""
    allowed = os.sched_getaffinity(0)
    return {
        "core_ids": sorted(allowed),
        "numa_nodes": sorted(number for number, cores in nodes.items() if cores & allowed),
        "numa_binding": node,
        "numa_reason": reason,
    }


def choose(
    spec: LaunchSpec,
    nodes: dict[int, set[int]],
    allowed: set[int],
    gpu_nodes: list[Optional[int]],
    identity: Identity,
) -> tuple[Optional[int], str]:
    """Return the NUMA node to bind to and '', or None and why not. Pure.

    Parameters
    ----------
    spec
        The launch; its promise of cores must stay kept.
    nodes
        Cores of each NUMA node.
    allowed
        Cores that this rank may use.
    gpu_nodes
        The NUMA node of each local rank's GPU.
    identity
        Which rank this is.
    """
    if not gpu_nodes:
        return None, "a rank without a GPU of its own has no side of the machine"
    if len(nodes) < 2:
        return None, "the machine has one NUMA node"
    mine = gpu_nodes[identity.local_rank]
    if mine is None or mine not in nodes:
        return None, "the system does not say which NUMA node the GPU hangs on"
    sharing = sum(1 for node in gpu_nodes if node == mine)
    needed = sharing * (spec.cores // max(1, spec.ranks_per_node))
    there = len(nodes[mine] & allowed)
    if there < needed:
        return (
            None,
            f"NUMA node {mine} has {there} of the allowed cores, its {sharing} ranks were promised {needed}",
        )
    return mine, ""


def node_cores(root: str = "/") -> dict[int, set[int]]:
    """Return the cores of each NUMA node. Reads /sys; empty where it does not say."""
    folder = os.path.join(root, "sys/devices/system/node")
    found: dict[int, set[int]] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return found
    for name in names:
        if name.startswith("node") and name[4:].isdigit():
            cores = parse_cores(_read(os.path.join(folder, name, "cpulist")))
            if cores:
                # Nodes of memory alone have no cores.
                found[int(name[4:])] = cores
    return found


def parse_cores(text: str) -> set[int]:
    """Read a list such as ``0-3,8,10-11``; empty for what is none."""
    cores: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if first.isdigit() and (last.isdigit() if dash else not last):
            cores.update(range(int(first), int(last or first) + 1))
    return cores


def gpu_node(index: int, root: str = "/") -> Optional[int]:
    """Return the NUMA node of a GPU, by its place on the PCI bus; None where torch or the system does not say."""
    properties = torch.cuda.get_device_properties(index)
    # Since torch 2.4 or so; older ones do not tell.
    place = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if None in place:
        return None
    domain, bus, device = place
    text = _read(
        os.path.join(root, f"sys/bus/pci/devices/{domain:04x}:{bus:02x}:{device:02x}.0", "numa_node")
    ).strip()
    # -1: the firmware does not say.
    return int(text) if text.isdigit() else None


def _ranks_gpus(spec: LaunchSpec, identity: Identity) -> range:
    """Return the index of each local rank's GPU; none where a rank has none, or several (DataParallel)."""
    return range(spec.ranks_per_node if identity.is_cuda and len(identity.devices) == 1 else 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
