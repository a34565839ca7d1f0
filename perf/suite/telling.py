"""In which order comparisons are asked: what tells most comes first, for whoever has little time. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from perf.catalogue import COMPARING, Group

__all__ = ["places_of_groups"]


def places_of_groups(groups: Iterable[Group]) -> dict[str, int]:
    """Return each group's place by name; 0 is asked first.

    What a stack is accepted by comes before the rest. Then workloads take turns, and of each the variant that exercises
    most comes first: the most devices and nodes (communication), then the real loader before data that lie on the
    device, then fp32 before torch's own precision. Quotients come last: their parts were compared by then.
    """
    found = list(groups)
    workloads = list(dict.fromkeys(group.members[0].variant.workload for group in found))
    turns: dict[str, int] = {}
    order = []
    for group in sorted(found, key=_telling):
        workload = group.members[0].variant.workload
        turns[workload] = turns.get(workload, 0) + 1
        order.append((_class(group), turns[workload], workloads.index(workload), group.name))
    return {name: place for place, (*_, name) in enumerate(sorted(order))}


def _class(group: Group) -> tuple[bool, bool]:
    return COMPARING[0] not in group.profiles, group.question != "compare"


def _telling(group: Group) -> tuple[tuple[bool, bool], int, bool, bool, str]:
    variant = group.members[-1].variant
    plain = variant.precision == "fp32" and not variant.optimizations
    return _class(group), -variant.count * variant.nodes, variant.mode != "full", not plain, group.name
