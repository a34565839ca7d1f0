"""Which tests go into which job: groups that need the same nodes and GPUs share one. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from perf.catalogue import Member, group_of_node_id
from perf.cluster.costs import group_named, group_seconds, job_limit_seconds
from perf.cluster.sites import Site
from perf.profiles import Profile
from perf.suite.selection import Machine, Need, need_of_member, why_not


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """One collected test, as `perf.cluster.collecting` writes it."""

    __test__ = False

    node_id: str
    device: str
    nodes: int
    gpus: int
    cores: int
    backends: list[str]
    beside: list[str] = []

    @property
    def need(self) -> Need:
        """What it needs of a machine."""
        return Need(
            self.device, self.gpus, self.nodes, self.cores, frozenset(self.backends), frozenset(self.beside)
        )


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job. `planned_seconds` is what it is expected to take, `seconds` its time limit. `hold_to` is a node's name.

    `variant_of` names the job that it repeats elsewhere (``--each-node``, ``--confirm-on``); '' for the first.
    """

    name: str
    nodes: int
    gpus: int
    cores: int
    exclusive: bool
    planned_seconds: float
    seconds: int
    node_ids: list[str]
    hold_to: str = ""

    @property
    def gpu_hours_planned(self) -> float:
        """GPU hours that it is expected to use."""
        return self.nodes * self.gpus * self.planned_seconds / 3600

    @property
    def gpu_hours_most(self) -> float:
        """GPU hours that it can use at most."""
        return self.nodes * self.gpus * self.seconds / 3600


@dataclass(frozen=True)
class Plan:
    """The jobs, and the tests that are in none with the reason."""

    jobs: list[Job] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Part:
    """The tests of one group. It is measured together, so it is never split."""

    node_ids: tuple[str, ...]
    nodes: int
    gpus: int
    planned: float
    most: float


def parse_collected(text: str) -> list[Test]:
    """Read the list of collected tests."""
    return msgspec.convert(json.loads(text), list[Test])


def site_machine(site: Site, nodes: int | None = None) -> Machine:
    """Return what the site's nodes have; which backends the stack has only the stack can say."""
    return Machine(site.node.gpus, site.node.cores, nodes or site.node.most, nccl=True, gloo=True)


def make_plan(
    tests: Sequence[Test],
    site: Site,
    profile: Profile,
    device: str,
    *,
    most_nodes: int | None = None,
    extras: int = 0,
) -> Plan:
    """Gather tests into jobs.

    Parameters
    ----------
    tests
        What pytest collected.
    site
        What nodes there are and how long a job may be.
    profile
        How many launches there are.
    device
        The kind of device that is measured, ``cpu`` or ``cuda``.
    most_nodes
        Nodes that a job may have, where that is fewer than the site's `most`.
    extras
        Launches of each variant beside the judged ones.
    """
    machine = site_machine(site, most_nodes)
    left_out: dict[str, str] = {}
    by_group: dict[str, list[Test]] = {}
    for test in tests:
        reason = why_not(test.need, machine, device) if test.device else "measures nothing"
        if reason:
            left_out[test.node_id] = reason.replace(" here", f" at {site.name}")
        else:
            by_group.setdefault(group_of_node_id(test.node_id) or test.node_id, []).append(test)
    parts = [_part(found, machine, profile, device, extras) for found in by_group.values()]
    return Plan(_gather(parts, site), left_out)


def _part(tests: Sequence[Test], machine: Machine, profile: Profile, device: str, extras: int) -> _Part:
    group = group_named(group_of_node_id(tests[0].node_id))
    members: list[Member] = []
    if group is not None:
        members = [
            m
            for m in group.members
            if m.runs_in(profile.name) and why_not(need_of_member(m), machine, device) is None
        ]
    # Once more where they were asked for by an option too: a limit that is too long costs little.
    extras += len({extra for test in tests for extra in test.beside})
    planned, most = group_seconds(group, members, profile, extras) if group is not None else (0.0, 0.0)
    # The whole group is measured wherever one of its tests runs, so all its members count.
    return _Part(
        tuple(test.node_id for test in tests),
        max([test.nodes for test in tests] + [m.variant.nodes for m in members]),
        max([test.gpus for test in tests] + [m.variant.gpus for m in members]),
        planned,
        most,
    )


def _gather(parts: Iterable[_Part], site: Site) -> list[Job]:
    """Put parts with equal needs into one job, as many as its time limit holds."""
    allowed = site.scheduler.time_seconds
    bundles: dict[tuple[int, int], list[list[_Part]]] = {}
    for part in parts:
        found = bundles.setdefault((part.nodes, part.gpus), [[]])
        if found[-1] and job_limit_seconds(sum(p.most for p in [*found[-1], part]), allowed) == allowed:
            found.append([])
        found[-1].append(part)
    jobs = []
    # The largest first: it waits longest in the queue.
    for (nodes, gpus), of_need in sorted(bundles.items(), key=lambda item: item[0], reverse=True):
        for number, bundle in enumerate(of_need, start=1):
            name = f"{nodes}node-{gpus}gpu" + (f"-{number}" if len(of_need) > 1 else "")
            jobs.append(_job(name, nodes, gpus, bundle, site))
    return jobs


def _job(name: str, nodes: int, gpus: int, bundle: Sequence[_Part], site: Site) -> Job:
    scheduler, node = site.scheduler, site.node
    part_of_node = not scheduler.exclusive and gpus and node.cores_per_gpu
    return Job(
        name=name,
        nodes=nodes,
        gpus=gpus,
        cores=min(node.cores, gpus * (node.cores_per_gpu or 0)) if part_of_node else node.cores,
        exclusive=scheduler.exclusive,
        planned_seconds=sum(part.planned for part in bundle),
        seconds=job_limit_seconds(sum(part.most for part in bundle), scheduler.time_seconds),
        node_ids=[node_id for part in bundle for node_id in part.node_ids],
    )


def plan_facts(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON-like data, for ``--dry-run --json`` and the run's folder."""
    return {"jobs": msgspec.to_builtins(plan.jobs), "left_out": plan.left_out}
