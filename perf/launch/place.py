"""Where a launch runs: on this node, or as a step on the nodes of an allocation. `perf.cluster` makes the latter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

NODE = "@STACKPROOF_NODE@"
"""Stands in a step's words for the number of the node that it runs on, from 0; the shell of each task puts it there."""


class Place(Protocol):
    """Starts one task on each of some nodes."""

    @property
    def nodes(self) -> int:
        """Nodes that there are."""

    @property
    def cores(self) -> int | None:
        """Cores of each node that may be used; None where this process's own are meant."""

    def step(self, nodes: int, options: tuple[str, ...] = ()) -> list[str]:
        """Return the words that start what follows them once on each of the first `nodes` nodes; none for here.

        `options` are for the starting command alone, such as a container's image.
        """

    def node_number(self) -> str:
        """Return a bash expression for the number of the node that a task of a step runs on."""

    def endpoint(self, launch: str) -> tuple[str, int]:
        """Return host and port on which the first node's torchrun waits for the others'."""

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return `environ` as a step should inherit it."""


class Here:
    """The node that the driver is on, without a step."""

    nodes = 1
    cores: int | None = None

    def step(self, nodes: int, options: tuple[str, ...] = ()) -> list[str]:
        """Return no words: launches are this process's own children."""
        return []

    def node_number(self) -> str:
        """Return the only node's number."""
        return "0"

    def endpoint(self, launch: str) -> tuple[str, int]:
        """Return nothing that could be used: one torchrun alone needs no endpoint."""
        raise ValueError("one node has no endpoint; its torchrun is standalone")

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return everything."""
        return dict(environ)


HERE = Here()
