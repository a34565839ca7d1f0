"""The same tests on every node: which nodes are slower or faster than the fleet. Pure."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

import msgspec

from perf.cluster.jobs import Job, Plan
from perf.contract import LaunchRecord
from perf.verdict.words import rounded

FEWEST = 3
"""With two nodes nobody can say which of them is off."""

FAR = 3.5
"""Of robust standard deviations: the modified z-score above which Iglewicz and Hoaglin call a value an outlier (1993;
NIST e-Handbook of Statistical Methods, 1.3.5.17)."""

TO_SIGMA = 1.4826
"""Median absolute deviation to standard deviation, for normal noise."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """One node in one variant. `ratio` is its rate over the fleet's median; `far` whether it is an outlier."""

    variant: str
    node: str
    rate: float
    ratio: float
    launches: int
    far: bool


def on_each(plan: Plan, nodes: Sequence[str]) -> Plan:
    """Return the plan's jobs of one node, once for each of `nodes`; those of several nodes are left out."""
    jobs: list[Job] = []
    left_out = dict(plan.left_out)
    for job in plan.jobs:
        if job.nodes > 1:
            left_out |= dict.fromkeys(job.node_ids, "needs several nodes; it can't be held to one")
            continue
        jobs += [
            msgspec.structs.replace(job, name=f"{job.name}.{safe(node)}", hold_to=node) for node in nodes
        ]
    return Plan(jobs, left_out)


def safe(node: str) -> str:
    """Return a node's name as it can stand in a file's."""
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in node)


def standings(records: Iterable[LaunchRecord]) -> list[Standing]:
    """Hold each node's median rate, in each variant of one node, against the fleet's median.

    The noise is the larger one of how much nodes differ (robustly, so that an outlier does not hide itself) and how
    much launches of one node do.
    """
    rates: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if record.nodes == 1 and record.samples_per_second > 0 and not record.profiled and record.valid:
            by_node = rates.setdefault(_member(record), {})
            by_node.setdefault(record.host[0], []).append(math.log(record.samples_per_second))
    found = []
    for variant, by_node in rates.items():
        medians = {node: statistics.median(values) for node, values in by_node.items()}
        centre = statistics.median(medians.values())
        spread = TO_SIGMA * statistics.median(abs(value - centre) for value in medians.values())
        noise = max(spread, _within(list(by_node.values())))
        for node, value in sorted(medians.items()):
            # Equal to the last digit is no noise at all; anything else than equal is far then.
            far = len(medians) >= FEWEST and abs(value - centre) > FAR * noise + 1e-12
            rate = math.exp(value)
            found.append(Standing(variant, node, rate, math.exp(value - centre), len(by_node[node]), far))
    return found


def sentences(found: Sequence[Standing]) -> list[str]:
    """Return what is to be said: each outlier, or that there is none, or that there are too few nodes."""
    nodes = {standing.node for standing in found}
    if not found:
        return ["No node has left a measurement."]
    if len(nodes) < FEWEST:
        ratios = ", ".join(f"{s.node} {s.ratio:.3f} ({s.variant})" for s in found)
        return [
            f"{len(nodes)} nodes: too few to say which is off ({FEWEST} are needed). Rate over the median: {ratios}."
        ]
    said = [
        f"{s.node} is {'slower' if s.ratio < 1 else 'faster'} than the fleet in {s.variant}: "
        f"{rounded(s.rate)} samples/s, {s.ratio:.3f} of the median of {len(nodes)} nodes ({s.launches} launches)."
        for s in found
        if s.far
    ]
    return said or [
        f"No node of {len(nodes)} is off: all are within {FAR} robust standard deviations of the median."
    ]


def _within(groups: Sequence[Sequence[float]]) -> float:
    """Return the pooled standard deviation of launches of one node; 0 where no node has two."""
    several = [values for values in groups if len(values) > 1]
    free = sum(len(values) - 1 for values in several)
    if not free:
        return 0.0
    return math.sqrt(sum(statistics.variance(v) * (len(v) - 1) for v in several) / free)


def _member(record: LaunchRecord) -> str:
    return record.variant + ("" if record.plan == "window" else f"+{record.plan}")
