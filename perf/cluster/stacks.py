"""A site's stack made ready for launches, and the check that what was measured is it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.cluster.sites import Site, StackTable
from perf.cluster.templates import fill
from perf.contract import LaunchRecord
from perf.launch.environment import stack_environment
from perf.launch.place import Place
from perf.launch.stack import PROBE, PROBE_SECONDS, Stack, StackError, probe_with
from perf.launch.text import harmless
from perf.machine import REPOSITORY

TOLD = ("torch", "torch_path")
"""What tells one torch from another: its version, and the folder that it was imported from."""


def places_of(site: Site, results: Path, cache_dir: str) -> dict[str, str]:
    """Return what a stack's words may name in braces."""
    return {
        "repository": str(REPOSITORY),
        "results": str(results),
        "data": site.data.root,
        "cache": cache_dir,
    }


def site_stack(site: Site, name: str, places: Mapping[str, str]) -> Stack:
    """Return a stack of a site, not yet probed."""
    table = site.stack(name)
    return Stack(
        name,
        table.python,
        setup=tuple(table.setup),
        wrapper=tuple(fill(table.wrapper, places)),
        environment={**site.node.environment, **table.environment},
        step_options=tuple(fill(table.step_options, places)),
    )


def probe_site_stack(
    site: Site,
    stack: Stack,
    place: Place,
    environ: Mapping[str, str] | None = None,
    *,
    timeout: float = PROBE_SECONDS,
    module: str = PROBE,
) -> Stack:
    """Ask a stack what it is, on a node where it will be measured, in the way in which it will be started.

    Raises
    ------
    StackError
        If it does not answer, or holds another torch than the site file says.
    """
    variables = os.environ if environ is None else environ
    words = [
        *place.step(1, stack.step_options),
        *stack.before(place.node_number()),
        stack.python,
        "-m",
        module,
    ]
    environment = {**stack_environment(place.environment(variables)), **stack.environment}
    probed = probe_with(words, environment, timeout)
    where = f"{site.path}: [stacks.{stack.name}]"
    if probed.facts is None:
        raise StackError(f"{where}: {harmless(stack.python)} {probed.problem}")
    problem = wrong_torch(site.stack(stack.name), str(probed.facts.get("torch")))
    if problem:
        raise StackError(f"{where}: {problem}, imported from {harmless(str(probed.facts.get('torch_path')))}")
    return Stack(
        stack.name,
        stack.python,
        {**probed.facts, "passed_over": []},
        stack.setup,
        stack.wrapper,
        stack.environment,
        stack.step_options,
    )


def wrong_torch(table: StackTable, found: str) -> str:
    """Return what is wrong with a torch's version; '' where it is what the site file says. ``2.9.1+cu129`` is 2.9.1."""
    if not table.torch or found == table.torch or found.split("+", maxsplit=1)[0] == table.torch:
        return ""
    return f"torch {harmless(found)} was found, the site file says {harmless(table.torch)}"


def stranger(stack: Stack, record: LaunchRecord, others: Sequence[str] = TOLD) -> str:
    """Return how a launch's torch differs from the stack's own as it was probed; '' where it is the same."""
    for key in others:
        expected, found = stack.facts.get(key), record.stack.get(key)
        if expected is not None and found is not None and expected != found:
            return (
                f"the worker imported another torch than the stack's: {key} is {harmless(str(found))}, the stack "
                f"{harmless(stack.name)} had {harmless(str(expected))} when it was asked before the first launch; "
                f"look for PYTHONPATH and for packages in ~/.local"
            )
    return ""
