"""Whether more devices give more: weak scaling (as many samples a device), strong scaling (as many in all)."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Group, Pair, groups, pairs, whole_groups
from perf.limits import DEVICE_BOUND_SCALING, WEAK_SCALING, Limit
from perf.suite.feeding import batches_an_epoch
from perf.suite.judge import Judge
from perf.verdict.scaling import efficiencies, efficiencies_in_words
from perf.verdict.words import rounded
from perf.workloads import WORKLOADS

CURVES = ("weak", "weak_real", "weak_data", "strong", "strong_real")
"""``weak`` trains on data that lie on the device, ``_real`` on the real loader, ``_data`` is the loader alone."""

_JUDGED = [
    Pair(g, m, g.members[0])
    for question in CURVES
    for g in groups(question)
    if g.judged
    for m in g.members[1:]
]
_POINTS = [
    Pair(g, m, g.members[0], f"{m.variant.count}of{len(g.members)}")
    for q in CURVES
    for g in groups(q)
    for m in g.members[1:]
]


def limit_of(pair: Pair) -> Limit:
    """Return by how much a step on several devices may be longer.

    Under strong scaling each device has less to do, so that a limit for weak scaling is one for it too.
    """
    if pair.new.variant.workload == "unet3d":
        return DEVICE_BOUND_SCALING
    return WEAK_SCALING[pair.new.variant.device]


@pytest.mark.parametrize("pair", pairs(_JUDGED))
def test_scaling_keeps_its_efficiency(pair: Pair, limits: Judge) -> None:
    """A step on N devices takes little longer than on one, or N devices give what they are known to give."""
    limits.scaling(pair, limit_of(pair))


@pytest.mark.parametrize("pair", pairs(_POINTS))
def test_efficiency_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """Throughput on N devices over N times that on one, as launched in the same rounds."""
    several, one = bench.measure(pair.new), bench.measure(pair.base)
    count = pair.new.variant.count
    rates = {1: statistics.median(one.throughputs), count: statistics.median(several.throughputs)}
    kind = "strong" if pair.new.variant.batch else "weak"
    said = f"{kind} scaling, mode {pair.new.variant.mode}: {efficiencies_in_words(rates)}."
    limits.tell("scaling_efficiency", "share", several, efficiencies(rates)[count], [said])


@pytest.mark.parametrize("group", whole_groups("conventions"))
def test_both_conventions_of_the_batch_are_told(group: Group, bench: Any, limits: Judge) -> None:
    """Batch per rank: N times the samples a step, fewer steps. Divided by world size: the same step, smaller parts."""
    single, per_rank, divided = (bench.measure(m) for m in group.members)
    samples = WORKLOADS[group.members[0].variant.workload].train_samples
    sentences = []
    for name, one in (("one process", single), ("per rank", per_rank), ("divided by world size", divided)):
        launch = one.first
        ranks = launch.ranks_per_node
        steps = batches_an_epoch(samples, ranks, launch.batch_size)
        sentences.append(
            f"{name}: {launch.batch_size} a rank, {launch.batch_size * ranks} in all, {steps} steps an epoch, "
            f"{rounded(statistics.median(one.throughputs))} samples/s."
        )
    assert per_rank.first.batch_size == single.first.batch_size
    assert divided.first.batch_size * divided.first.ranks_per_node == single.first.batch_size
    ratio = statistics.median(divided.throughputs) / statistics.median(per_rank.throughputs)
    limits.tell("divided_over_per_rank", "ratio", divided, ratio, sentences)
