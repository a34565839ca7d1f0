"""What each optimization gains, one at a time and all together; and that it trains the same thing."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Group, Member, Pair, groups, pairs
from perf.limits import LOSS_PARITY, RESIDENT_SHARE, RUNG, TUNED
from perf.suite.judge import Judge
from perf.variants import Variant


def label(variant: Variant) -> str:
    """Name a rung by what it changes."""
    changes = [variant.precision if variant.precision != "fp32" else "", *variant.optimizations]
    return ".".join(word for word in changes if word)


def rungs(group: Group) -> list[Pair]:
    """Return every rung of a ladder against its foot, the first member."""
    foot, *others = group.members
    return [Pair(group, m, foot, label(m.variant)) for m in others]


def tuned(group: Group) -> tuple[Member, Member, Member]:
    """Return the members of a group ``tuned``: one worker, everything on resident data, everything on a ring."""
    one_worker, resident, alone, *_ = group.members
    return one_worker, resident, alone


_RUNGS = [pair for question in ("ladder", "overlap") for g in groups(question) for pair in rungs(g)]
# Windows are filled by time: in one of 4 s the faster of these two trains on, and its loss says another thing.
_MIXED = [pair for g in groups("mixed") for pair in rungs(g)]
_TUNED = [Pair(g, tuned(g)[1], tuned(g)[0], "all") for g in groups("tuned")]
_RESIDENT = [Pair(g, tuned(g)[1], tuned(g)[2], "share") for g in groups("tuned")]


@pytest.mark.parametrize("pair", pairs([*_RUNGS, *_MIXED]))
def test_a_rung_does_not_slow_a_step(pair: Pair, limits: Judge) -> None:
    """An optimization that is in force makes a step shorter, or says why not; it never makes it much longer."""
    limits.rung(pair, RUNG[pair.new.variant.workload])


@pytest.mark.parametrize("pair", pairs(_RUNGS))
def test_a_rung_trains_the_same(pair: Pair, bench: Any) -> None:
    """On the same batches the last losses differ from those without the rung by no more than rounding explains."""
    new, base = bench.measure(pair.new), bench.measure(pair.base)
    first, expected = (
        statistics.median(losses)
        for losses in zip(*((r.loss_first, r.loss_last) for r in base.launches), strict=True)
    )
    found = statistics.median(r.loss_last for r in new.launches)
    assert abs(found - expected) <= LOSS_PARITY * abs(first), (
        f"{pair.new.id} ends at a loss of {found:.4g}, {pair.base.id} at {expected:.4g}"
    )


@pytest.mark.parametrize("pair", pairs(_MIXED))
def test_a_rung_learns(pair: Pair, bench: Any) -> None:
    """The loss falls with the rung and without it: so much can be said of windows that hold other steps."""
    for member in (pair.new, pair.base):
        for launch in bench.measure(member).launches:
            assert launch.losses_finite
            assert launch.loss_last < launch.loss_first, (
                f"launch {launch.launch} of {member.id} learned nothing"
            )


@pytest.mark.parametrize("pair", pairs(_TUNED))
def test_everything_together_is_much_faster_than_one_worker(pair: Pair, limits: Judge) -> None:
    """Data on the device and every rung together leave the tutorials' loop far behind."""
    limits.ratio(pair, TUNED[pair.new.variant.workload], can_be_faster=True)


@pytest.mark.parametrize("pair", pairs(_RESIDENT))
def test_batches_made_on_the_device_cost_little(pair: Pair, limits: Judge) -> None:
    """Training on data that lie on the device is nearly as fast as on batches that are made already."""
    limits.share(pair.new, pair.base, RESIDENT_SHARE[pair.new.variant.workload])
