"""What makes launches unfit for a judgement, in words: the machine, mixed stacks, drift, launches that were redone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perf.contract import LaunchRecord
from perf.launch.validity import STACK_KEYS, UNSTEADY
from perf.suite.source import Measurement
from perf.verdict.steady import too_unsteady

CLOCKS = {"host": "the host's clock", "events": "events", "mixed": "both"}


def replaced_in_words(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return one sentence for each launch that was taken again, so that no replacement goes unseen."""
    return tuple(
        f"launch {launch.launch} of {side.member.id} was taken again, the machine was not fit: {launch.unfit[0]}"
        for side in sides
        for launch in side.replaced
    )


def unsteady_in_words(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return one sentence for each side of which too many launches drift for a verdict."""
    found = []
    for side in sides:
        flags = [UNSTEADY in launch.flags for launch in side.launches]
        if too_unsteady(flags):
            found.append(
                f"the steps of {sum(flags)} of {len(flags)} launches of {side.member.id} grew longer or shorter inside "
                f"their window, beyond their own noise: look for other work on this machine, or for heat"
            )
    return tuple(found)


def unfit_in_words(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return why launches of the sides cannot be judged: facts about the machine or the work, never their times."""
    launches = [launch for side in sides for launch in side.launches]
    hosts = _mixed("hosts", {" and ".join(sorted(set(launch.host))) for launch in launches})
    return (*hosts, *mixed_stacks(launches), *mixed_ways(launches), *invalid_in_words(sides))


def mixed_stacks(launches: Sequence[LaunchRecord]) -> tuple[str, ...]:
    """Say whether one side of a comparison, or all launches where there is one, come from several stacks."""
    found: tuple[str, ...] = ()
    for side in sorted({launch.side for launch in launches}):
        stacks = [launch.stack for launch in launches if launch.side == side]
        # Those of its parts that are not the same in all, torch first: they name the stack well enough.
        keys = [key for key in ("torch", *STACK_KEYS) if len({stack.get(key) for stack in stacks}) > 1]
        found += _mixed("stacks", {f"{keys[0]} {stack.get(keys[0])}" for stack in stacks} if keys else set())
    return found


def mixed_ways(launches: Sequence[LaunchRecord]) -> tuple[str, ...]:
    """Say whether launches were made in different ways: by fork and fresh, alone on their node and beside others.

    Two sides of a comparison may differ in how they were started, where that is what is compared.
    """
    found: tuple[str, ...] = ()
    for side in sorted({launch.side for launch in launches}):
        found += _mixed("launchers", {launch.launcher for launch in launches if launch.side == side})
    words = {True: "beside others", False: "alone on a node"}
    return (*found, *_mixed("conditions", {words[launch.shared_node] for launch in launches}))


def other_clocks(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Say whether launches of one rank were timed by different clocks, which differ by what an event takes."""
    found = Counter(
        launch.clocks[0]
        for side in sides
        for launch in side.launches
        # A loader alone has the host's in any case, and several ranks have events.
        if len(launch.clocks) == 1 and launch.clocks[0] is not None and launch.mode != "io"
    )
    if len(found) < 2:
        return ()
    counts = ", ".join(
        f"{count} launch{'es' * (count > 1)} by {CLOCKS.get(name, name)}"
        for name, count in sorted(found.items())
    )
    said = (
        f"Steps were not timed alike: {counts}. An event behind each step takes some 10 us of a host that holds its "
        "GPU up, and where the GPU is the slower one there is one (docs/verdicts.md)."
    )
    return (said,)


def _mixed(what: str, found: set[str]) -> tuple[str, ...]:
    if len(found) < 2:
        return ()
    names = ", ".join(sorted(found))
    return (f"the launches come from different {what}, which can't be held against each other: {names}",)


def invalid_in_words(sides: Sequence[Measurement]) -> tuple[str, ...]:
    """Return each reason for which a launch of the sides is not valid, with the launch."""
    return tuple(
        f"launch {launch.launch} of {side.member.id}: {reason}"
        for side in sides
        for launch in side.launches
        for reason in launch.reasons
        if not launch.valid
    )
