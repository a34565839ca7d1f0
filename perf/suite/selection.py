"""What can run here, and marks in ``-m`` expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from perf.catalogue import GROUPS, Group, Member, Pair

PERF = "perf"
"""Folder of the perf tests, below pytest's root."""

MARKS = (
    "gpus(n): GPUs that the test needs on one node",
    "nodes(n): nodes that the test needs",
    "cores(n): cores that the test needs on one node: one a rank, or those that it is tied to",
    "device(kind): what the test measures, cpu or cuda",
    "backend(name): communication backend that the test needs, gloo or nccl",
    "beside(extra): launches that the test takes beside the judged ones, one of each of its members (phases)",
)


@dataclass(frozen=True)
class Machine:
    """What there is to run on. `nccl` and `gloo` say whether the stack has the backend."""

    gpus: int
    cores: int
    nodes: int = 1
    nccl: bool = False
    gloo: bool = True

    def device(self, asked: str) -> str:
        """Return the kind of device that a run measures: what was asked for, else GPUs where there are any."""
        if asked != "auto":
            return asked
        return "cuda" if self.gpus else "cpu"


@dataclass(frozen=True)
class Need:
    """What one test needs, from its marks."""

    device: str
    gpus: int = 0
    nodes: int = 1
    cores: int = 1
    backends: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    """Launches that the test takes beside the judged ones, one of each of its members: ``phases``, say."""


def need_of(marks: Iterable[object]) -> Need | None:
    """Return what an item's marks ask for; None without a mark ``device``. Several marks of a name: the largest."""
    numbers = {"gpus": 0, "nodes": 1, "cores": 1}
    device = ""
    backends, beside = set(), set()
    for mark in marks:
        name, values = getattr(mark, "name", ""), getattr(mark, "kwargs", {})
        if name in numbers:
            numbers[name] = max(numbers[name], int(values["n"]))
        elif name == "device":
            device = values["kind"]
        elif name == "backend":
            backends.add(values["name"])
        elif name == "beside":
            beside.add(values["extra"])
    if not device:
        return None
    return Need(
        device, numbers["gpus"], numbers["nodes"], numbers["cores"], frozenset(backends), frozenset(beside)
    )


def need_of_member(member: Member) -> Need:
    """Return what a member needs."""
    v = member.variant
    backends = frozenset({v.backend} - {"none"})
    return Need(v.device, v.gpus, v.nodes, v.least_cores, backends)


def why_not(need: Need, machine: Machine, device: str) -> str | None:
    """Return why a test can't run on a machine, in words; None if it can.

    Parameters
    ----------
    device
        The kind of device that this run measures.
    """
    if need.gpus > machine.gpus:
        return f"needs {need.gpus} GPU{'s' if need.gpus > 1 else ''}, {machine.gpus} here"
    if need.device != device:
        other = "CPU" if need.device == "cpu" else "GPUs"
        return f"measures the {other}; this run measures {device} (--device {need.device} would measure it)"
    if need.nodes > machine.nodes:
        return f"needs {need.nodes} nodes, {machine.nodes} here"
    if need.cores > machine.cores:
        return f"needs {need.cores} cores, {machine.cores} allowed here"
    for backend in sorted(need.backends):
        if not getattr(machine, backend):
            return f"needs the backend {backend}, which this stack's torch does not have"
    return None


def members_here(group: str, profile: str, machine: Machine, device: str) -> list[Member]:
    """Return the members that are measured with a group: all of a profile's that can run on a machine."""
    return [
        member
        for member in GROUPS[group].members
        if member.runs_in(profile) and why_not(need_of_member(member), machine, device) is None
    ]


_SHORT = re.compile(
    r"\b(gpus|nodes|cores)\(\s*([0-9]+)\s*\)|\b(backend|device)\(\s*['\"]?([a-z]+)['\"]?\s*\)"
)


def expand_markexpr(expression: str) -> str:
    """Rewrite ``gpus(2) and backend(nccl)`` to the keyword form that pytest's ``-m`` understands.

    pytest 9.2 takes ``gpus(n=2)`` only: a bare number is a usage error, and a positional mark matches nothing.
    """

    def expand(match: re.Match[str]) -> str:
        if match[1]:
            return f"{match[1]}(n={match[2]})"
        key = "name" if match[3] == "backend" else "kind"
        return f'{match[3]}({key}="{match[4]}")'

    return _SHORT.sub(expand, expression)


def members_of(item: Any) -> list[Member]:
    """Return the members that the parameters of a pytest item name."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec is not None else ()
    found: list[Member] = []
    for value in values:
        if isinstance(value, Pair):
            found += [value.new, value.base]
        elif isinstance(value, Group):
            found += value.members
        elif isinstance(value, Member):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, Member)]
    return found
