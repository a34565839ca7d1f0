"""Whether each way of running it is in proportion: DDP against one process, and against DataParallel."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Pair, groups, pairs
from perf.groups_parallel import WAYS
from perf.limits import DDP_AGAINST_DP, DDP_OVERHEAD, WEAK_SCALING
from perf.suite.judge import Judge
from perf.suite.source import alike

_WORLD_SIZE_1 = [Pair(g, g.member("ddp", count=1), g.member("single")) for g in groups("ddp")]
_WEAK = [Pair(g, m, g.member("single")) for g in groups("ddp") for m in g.members if m.variant.count > 1]
_NODES = [
    Pair(g, m, next(base for base in g.members if base.variant.nodes == 1))
    for g in groups("nodes")
    for m in g.members
    if m.variant.nodes > 1
]
_DP = [Pair(g, g.member("ddp"), g.member("dp")) for name in WAYS for g in groups(name)]


@pytest.mark.parametrize("pair", pairs(_WORLD_SIZE_1))
def test_ddp_overhead_at_world_size_1(pair: Pair, limits: Judge) -> None:
    """DDP on one rank, which has nobody to talk to, costs little over the plain model."""
    limits.ratio(pair, DDP_OVERHEAD[pair.new.variant.device])


@pytest.mark.parametrize("pair", pairs(_WEAK))
def test_ddp_overhead_in_weak_scaling(pair: Pair, limits: Judge) -> None:
    """With as many samples a rank, a step on several ranks takes little longer than on one."""
    limits.ratio(pair, WEAK_SCALING[pair.new.variant.device])


@pytest.mark.parametrize("pair", pairs(_DP))
def test_ddp_is_not_slower_than_dp(pair: Pair, limits: Judge) -> None:
    """At an equal global batch and equal workers a GPU, DDP is at least as fast as DataParallel."""
    limits.ratio(pair, DDP_AGAINST_DP, can_be_faster=True)


@pytest.mark.parametrize("pair", pairs(_NODES))
def test_what_another_node_costs_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """A step on two nodes beside the same on one, with as many samples a rank: the network's part, not judged yet."""
    several, one = alike(bench.measure(pair.new), bench.measure(pair.base))
    ratio = statistics.median(several.step_times) / statistics.median(one.step_times)
    said = f"A step on {pair.new.variant.nodes} nodes takes {ratio:.3g} times the step on one."
    limits.tell("node_scaling", "ratio", several, ratio, [said])
