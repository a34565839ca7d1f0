"""The machine's cards in the catalogue, as pytest params: the members that measure rates, and each of their rates."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from perf.catalogue import Member, marks, members
from perf.verdict.machine import RATES


def rates_of(member: Member) -> tuple[str, ...]:
    """Return the names of the rates that a member's launches give."""
    return RATES[member.variant.strategy, member.variant.device]


def cards() -> list[Any]:
    """Return pytest params of the members that measure rates; their id is their group's name."""
    return [pytest.param(m, id=m.group, marks=marks([m])) for m in members(plan=("rates",))]


def trained() -> list[Any]:
    """Return pytest params of what trains and the cards that it is held against; their id is the member's."""
    found = []
    measuring = members(plan=("rates",))
    for m in members(mode=("full", "synthetic")):
        across = {"single"} | ({"ddp"} if m.variant.strategy == "ddp" else set())
        needed = tuple(
            c for c in measuring if c.variant.device == m.variant.device and c.variant.strategy in across
        )
        found.append(pytest.param(m, needed, id=m.id, marks=marks([m, *needed])))
    return found


def each_rate() -> list[Any]:
    """Return pytest params of a member and each of its rates; their id begins with the member's group.

    Not in profile ``smoke``, whose ranks have one thread and share the node with another group.
    """
    return [
        pytest.param(dataclasses.replace(m, smoke=False), name, id=f"{m.group}-{name}", marks=marks([m]))
        for m in members(plan=("rates",))
        for name in rates_of(m)
    ]
