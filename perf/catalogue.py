"""What is measured: groups of variants, declared here whatever is selected, and the pytest params made of them.

A group is measured together, in interleaved rounds, and is never split. A variant in two groups is measured in each;
tests of the variant alone use its home, the first group that holds it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from perf.declaration import Declaration
from perf.groups import declared
from perf.variants import Variant
from perf.workloads import SUBJECTS

SIDES = ("old", "new")
"""The two stacks of a comparison."""

COMPARING = ("compare", "compare-full", "compare-smoke")
"""Profiles in which two stacks are compared: in what a stack is accepted by, in all there is, and in all in small."""


@dataclass(frozen=True)
class Member:
    """A variant in a group, and what its launches are for (`perf.contract.LaunchSpec.plan`).

    `smoke` says whether profile ``smoke`` has time for it, `side` on which of two stacks it runs: ``old`` or ``new``;
    empty where there is one.
    """

    group: str
    variant: Variant
    plan: str = "window"
    smoke: bool = True
    side: str = ""

    def runs_in(self, profile: str) -> bool:
        """Whether a profile runs it."""
        return profile in GROUPS[self.group].profiles and (self.smoke or profile != "smoke")

    @functools.cached_property
    def id(self) -> str:
        """The variant's id, with the plan where that is not ``window``, and the side where there are two."""
        plan = "" if self.plan == "window" else f"+{self.plan}"
        return self.variant.id + plan + (f"@{self.side}" if self.side else "")


@dataclass(frozen=True)
class Group:
    """Variants that are measured together.

    Parameters
    ----------
    question
        What the group answers: ``loader``, ``ddp`` …
    judged
        Whether a statistical verdict rests on it, so that it needs more than one launch.
    smoke_judged
        Whether it gets its launches in profile ``smoke`` too.
    once
        Whether one launch does unless ``--launches`` asks for more: its repetitions lie within it.
    profiles
        Profiles that run it.
    compared
        Whether two stacks are compared in its variants.
    """

    name: str
    question: str
    members: tuple[Member, ...]
    judged: bool = True
    smoke_judged: bool = False
    once: bool = False
    profiles: tuple[str, ...] = ("smoke", "quick", "full")
    compared: bool = True

    def member(self, strategy: str, *, mode: str | None = None, count: int | None = None) -> Member:
        """Return the one member of that strategy, mode and count."""
        found = [
            m
            for m in self.members
            if m.variant.strategy == strategy
            and (mode is None or m.variant.mode == mode)
            and (count is None or m.variant.count == count)
        ]
        if len(found) != 1:
            raise LookupError(f"{self.name} has {len(found)} members {strategy}, mode {mode}, count {count}")
        return found[0]

    def of_side(self, side: str) -> list[Member]:
        """Return the members that run on one of two stacks."""
        return [member for member in self.members if member.side == side]

    @property
    def most_devices(self) -> int:
        """Devices a node of the largest member: what the cores are divided by for all members.

        A curve of scaling names more devices than a machine has; then it is those that there are (`share_for`).
        """
        return max(m.variant.devices_per_node for m in self.members)


def _group(workload: str, device: str, declared: Declaration) -> Group:
    name = f"{declared.question}@{workload}-{'gpu' if device == 'cuda' else 'cpu'}"
    return Group(
        name,
        declared.question,
        tuple(Member(name, v, plan, v not in declared.not_in_smoke) for v, plan in declared.members),
        declared.judged,
        declared.smoke_judged,
        declared.once,
        declared.profiles,
        declared.compared,
    )


GROUPS: dict[str, Group] = {
    group.name: group
    for workload in SUBJECTS
    for device in ("cpu", "cuda")
    for group in (_group(workload, device, declaration) for declaration in declared(workload, device))
}


def _comparison(member: Member) -> Group:
    """Return the group that launches a variant on two stacks in turn."""
    name = f"compare@{member.id}"
    profiles = COMPARING if "quick" in GROUPS[member.group].profiles else COMPARING[1:]
    sides = tuple(Member(name, member.variant, side=side) for side in SIDES)
    return Group(name, "compare", sides, profiles=profiles)


def _quotient(question: str, workload: str, device: str, parts: tuple[Variant, Variant]) -> Group:
    """Return the group that launches two variants on two stacks in turn: what is compared is their quotient."""
    name = f"{question}@{workload}-{'gpu' if device == 'cuda' else 'cpu'}"
    accepted = all("quick" in GROUPS[home(part.id).group].profiles for part in parts)
    sides = tuple(Member(name, part, side=side) for side in SIDES for part in parts)
    return Group(name, question, sides, profiles=COMPARING if accepted else COMPARING[1:])


def _quotients() -> list[Group]:
    """Return the comparisons of loader shares and of scaling, of each workload that the catalogue has both parts of."""
    found = []
    for workload in SUBJECTS:
        for device in ("cpu", "cuda"):
            mine = [m.variant for m in members(workload) if m.variant.device == device]
            for question, of in (("compare-loader", _loader_parts), ("compare-scaling", _scaling_parts)):
                parts = of(mine)
                if parts is not None:
                    found.append(_quotient(question, workload, device, parts))
    return found


def _loader_parts(variants: list[Variant]) -> tuple[Variant, Variant] | None:
    """Return the plain variant on its loader and on data that lie on the device."""
    for variant in variants:
        if variant.mode == "full" and variant.strategy == "single" and variant.precision == "fp32":
            other = dataclasses.replace(variant, mode="synthetic")
            if other in variants:
                return variant, other
    return None


def _scaling_parts(variants: list[Variant]) -> tuple[Variant, Variant] | None:
    """Return DDP on one device and on the fewest more of one node, so that most nodes can compare them."""
    ddp = [v for v in variants if v.strategy == "ddp" and v.mode == "synthetic" and v.nodes == 1]
    if not ddp:
        return None
    one, *more = sorted(ddp, key=lambda v: v.count)
    several = [variant for variant in more if variant.count > one.count]
    return (one, several[0]) if several else None


def home(member_id: str) -> Member:
    """Return the member of that id in its home group."""
    for group in GROUPS.values():
        for member in group.members:
            if member.id == member_id:
                return member
    raise LookupError(f"no group holds {member_id!r}")


def members(
    workload: str | None = None,
    *,
    strategy: tuple[str, ...] | None = None,
    mode: tuple[str, ...] | None = None,
    plan: tuple[str, ...] = ("window",),
    count: tuple[int, ...] | None = None,
) -> list[Member]:
    """Return the members, each in its home group, that match every condition given."""
    found: dict[str, Member] = {}
    for group in GROUPS.values():
        for m in group.members:
            v = m.variant
            if (
                m.plan in plan
                and not m.side
                and (workload is None or v.workload == workload)
                and (strategy is None or v.strategy in strategy)
                and (mode is None or v.mode in mode)
                and (count is None or v.count in count)
            ):
                found.setdefault(m.id, m)
    return list(found.values())


GROUPS |= {
    group.name: group
    for group in (
        _comparison(member) for member in members(mode=("full", "synthetic")) if GROUPS[member.group].compared
    )
}


GROUPS |= {group.name: group for group in _quotients()}


def groups(question: str) -> list[Group]:
    """Return the groups that answer a question, one a workload and kind of device."""
    return [group for group in GROUPS.values() if group.question == question]


def whole_groups(question: str) -> list[Any]:
    """Return pytest params of the groups that answer a question; their id is the group's name."""
    return [pytest.param(g, id=g.name, marks=marks(g.members)) for g in groups(question)]


def marks(needed: Iterable[Member]) -> list[pytest.MarkDecorator]:
    """Return the marks of what some members need: a pair takes the larger need."""
    variants = [m.variant for m in needed]
    found = [
        _mark("gpus", n=max(v.gpus for v in variants)),
        _mark("nodes", n=max(v.nodes for v in variants)),
        _mark("cores", n=max(v.least_cores for v in variants)),
        _mark("device", kind=variants[0].device),
    ]
    found += [_mark("backend", name=name) for name in sorted({v.backend for v in variants} - {"none"})]
    return found


@functools.cache
def _mark(word: str, **value: int | str) -> pytest.MarkDecorator:
    # Thousands of params share a few marks, and making one takes pytest a look through its list of names.
    made: pytest.MarkDecorator = getattr(pytest.mark, word)(**value)
    return made


def variants(workload: str | None = None, **conditions: Any) -> list[Any]:
    """Return pytest params of the members that match the conditions (see `members`); their id is the member's."""
    return [pytest.param(m, id=m.id, marks=marks([m])) for m in members(workload, **conditions)]


@dataclass(frozen=True)
class Pair:
    """Two members of one group that a test compares: `new` is held against `base`.

    `label` tells pairs of one group apart that have the same number of devices.
    """

    group: Group
    new: Member
    base: Member
    label: str = ""

    @property
    def id(self) -> str:
        """The group's name, and the judged member's device count or the pair's label."""
        return f"{self.group.name}-{self.label or self.new.variant.count}"


def pairs(found: Iterable[Pair]) -> list[Any]:
    """Return pytest params of pairs; their id begins with the group's name."""
    return [pytest.param(p, id=p.id, marks=marks([p.new, p.base])) for p in found]


def group_of_node_id(node_id: str) -> str | None:
    """Return the group that a test's node id belongs to, or None for a test without one.

    xdist's controller knows tests by their node ids only; the part in brackets is a member's or a pair's id.
    """
    start = node_id.find("[")
    if start < 0 or not node_id.endswith("]"):
        return None
    inner = node_id[start + 1 : -1]
    if inner in GROUPS:
        return inner
    # The longest: with -synthetic a comparison's name begins with another one's.
    begun = max((name for name in GROUPS if inner.startswith(f"{name}-")), key=len, default=None)
    if begun is not None:
        return begun
    try:
        return home(inner).group
    except LookupError:
        return None
