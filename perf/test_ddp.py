"""Whether each way of running it is in proportion: DDP against one process, and against DataParallel."""

from __future__ import annotations

import pytest

from perf.catalogue import Pair, groups, pairs
from perf.limits import DDP_AGAINST_DP, DDP_OVERHEAD, WEAK_SCALING
from perf.suite.judge import Judge

_WORLD_SIZE_1 = [Pair(g, g.member("ddp", count=1), g.member("single")) for g in groups("ddp")]
_WEAK = [Pair(g, m, g.member("single")) for g in groups("ddp") for m in g.members if m.variant.count > 1]
_DP = [Pair(g, g.member("ddp"), g.member("dp")) for g in groups("dp")]


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
