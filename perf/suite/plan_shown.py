"""``--plan``: what a run would measure on this machine, said and not done."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from perf import records
from perf.catalogue import Member
from perf.report.text import duration
from perf.suite.costs import START_SECONDS, expected_seconds
from perf.suite.options import Options
from perf.suite.planning import Part, Planned, beside, extra_launches, one_by_one, parts_of, rank, told
from perf.suite.selection import Machine, Need, members_here, why_not
from perf.suite.stacks import Stacks


def machine_of(options: Options) -> Machine:
    """Return what there is to run on. Asks the stack; leaves no run's folder behind."""
    with tempfile.TemporaryDirectory(prefix="stackproof-") as folder:
        return Stacks(options, records.Run(Path(folder))).machine


def lines_of(
    options: Options, tests: Sequence[tuple[Need, Sequence[Member]]], machine: Machine, processes: int
) -> list[str]:
    """Return the plan in lines.

    Parameters
    ----------
    tests
        What each collected perf test needs, and the members that it names.
    processes
        That measure (``-n``); 1 without.
    """
    device, profile = machine.device(options.device), options.sized_profile
    reasons: Counter[str] = Counter()
    groups: dict[str, None] = {}
    here = []
    for need, members in tests:
        reason = why_not(need, machine, device)
        if reason:
            reasons[reason] += 1
        else:
            groups.update(dict.fromkeys(member.group for member in members))
            here.append((need, members))
    parts = parts_of(
        [member for group in groups for member in members_here(group, profile.name, machine, device)],
        profile,
        functools.partial(expected_seconds, launcher=options.launcher_on("cuda")),
        extra_launches(here, options.extras),
    )
    planned, left_out, how = _placed(parts, options, machine, device, processes)
    lines = told(planned, reasons, start=START_SECONDS, how=how)
    return [*lines, _over_budget(left_out, options.budget or 0.0)] if left_out else lines


def _placed(
    parts: Sequence[Part], options: Options, machine: Machine, device: str, processes: int
) -> tuple[list[Planned], list[Part], str]:
    """Return the parts with their times, those that a budget has no room for, and how they are measured, in words."""
    left = None if options.budget is None else options.budget - START_SECONDS
    by = "by fork" if options.launcher_on(device) == "fork" else "each fresh"
    if processes > 1 and options.share_node and device == "cuda":
        how = f"launched {by}, {processes} at a time on {machine.gpus} GPUs"
        return *beside(parts, machine.gpus, processes, left), how
    # Times are taken alone, whoever else there is.
    ordered = sorted(parts, key=lambda part: rank(part.group)) if left is not None else list(parts)
    planned, left_out = one_by_one(ordered, left)
    return planned, left_out, f"launched {by}, one after the other"


def _over_budget(left_out: Sequence[Part], budget: float) -> str:
    names = ", ".join(part.group for part in left_out[:8]) + (" …" if len(left_out) > 8 else "")
    return (
        f"left out: {len(left_out)} groups, for which the budget of {duration(budget)} has no room: {names}"
    )
