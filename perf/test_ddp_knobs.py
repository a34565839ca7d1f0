"""What DDP says to the other ranks, what that costs, what its knobs change, and which rank the others wait for."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Pair, groups, pairs
from perf.launch.nccl import transport_in_words
from perf.limits import COMMUNICATION, DDP_KNOB
from perf.suite.judge import Judge
from perf.suite.parallel import all_reduces, buckets_in_words, peak_in_words, peak_of, rank_in_words
from perf.verdict.scaling import slowest_rank

_TALK = [g for question in ("talk", "talk4", "talk8") for g in groups(question)]
_SHARES = [Pair(g, g.members[0], g.members[1], "share") for g in _TALK]
_SILENT = [Pair(g, g.members[1], g.members[0], "ranks") for g in _TALK]
_KNOBS = [
    Pair(g, m, g.members[0], ".".join(m.variant.ddp_knobs)) for g in groups("knobs") for m in g.members[1:]
]


@pytest.mark.parametrize("pair", pairs(_SHARES))
def test_communication_share_is_within_its_limit(pair: Pair, limits: Judge) -> None:
    """The part of a step that is spent talking, 1 - T(no_sync) / T(DDP), stays below its limit."""
    limits.share(pair.new, pair.base, COMMUNICATION[pair.new.variant.device], of="communication")


@pytest.mark.parametrize("pair", pairs(_SILENT))
def test_the_slowest_rank_is_named(pair: Pair, bench: Any, limits: Judge) -> None:
    """Where ranks do not wait for each other the slowest shows: which it is, on which host and GPU, and how slow."""
    silent = bench.measure(pair.new)
    found = [[statistics.median(rank) for rank in launch.step_seconds] for launch in silent.launches]
    middle = [statistics.median(of_rank) for of_rank in zip(*found, strict=True)]
    rank, ratio = slowest_rank(middle)
    limits.tell("slowest_rank", "ratio", silent, ratio, [rank_in_words(silent.first, rank, middle)])


@pytest.mark.parametrize("pair", pairs(_SILENT))
def test_nothing_is_said_under_no_sync(pair: Pair, bench: Any) -> None:
    """DDP all-reduces in every step, and not once where it was told not to: by torch's profiler, on every rank."""
    silent, talking = bench.measure(pair.new), bench.measure(pair.base)
    assert {0.0} == all_reduces(silent)
    assert min(all_reduces(talking)) >= 1.0


@pytest.mark.parametrize("pair", pairs(_SILENT))
def test_ranks_of_one_node_talk_over_no_network(pair: Pair, bench: Any) -> None:
    """The transports that NCCL chose, by its own log, are those of one node: peer to peer or shared memory."""
    if pair.base.variant.backend != "nccl":
        pytest.skip("gloo has one transport")
    for launch in bench.measure(pair.base).launches:
        transports = launch.telemetry.get("transports")
        if not transports:
            pytest.skip(f"NCCL did not say which transport it chose in launch {launch.launch}")
        as_it_should_be, sentence, remedy = transport_in_words(launch, transports)
        assert as_it_should_be, f"{sentence} {remedy}"


@pytest.mark.parametrize("pair", pairs(_KNOBS))
def test_a_knob_does_not_slow_a_step(pair: Pair, limits: Judge) -> None:
    """Turning one of DDP's knobs makes a step no longer than torch's defaults; what it gains is told."""
    limits.rung(pair, DDP_KNOB)


@pytest.mark.parametrize("pair", pairs(_KNOBS))
def test_all_reduces_are_counted_and_explained(pair: Pair, bench: Any, limits: Judge) -> None:
    """A step has as many all-reduces as DDP has buckets, the same on every rank; what a knob makes of it is told."""
    base, turned = bench.measure(pair.base), bench.measure(pair.new)
    for one in (base, turned):
        for launch in one.launches:
            for rank, effective in enumerate(launch.effective):
                ddp = effective["ddp"]
                assert len(ddp["bucket_bytes"]) == ddp["all_reduces"], (
                    f"rank {rank} of {one.member.id}: {ddp}"
                )
                # All gradients are float32 and none is left out.
                assert 4 * launch.parameters == sum(ddp["bucket_bytes"])
        assert 1 == len(all_reduces(one)), f"ranks of {one.member.id} differ: {all_reduces(one)}"
    limits.tell("all_reduces", "a step", turned, min(all_reduces(turned)), buckets_in_words([base, turned]))


@pytest.mark.parametrize("pair", pairs(_KNOBS))
def test_broadcasts_of_buffers_are_counted(pair: Pair, bench: Any) -> None:
    """DDP broadcasts a network's buffers before each forward pass, unless it has none or was told not to."""
    for member in (pair.base, pair.new):
        # Of the suite's networks those with batch normalization have buffers.
        has_buffers = member.variant.workload.startswith("resnet")
        expected = has_buffers and "nobuffers" not in member.variant.ddp_switches
        for launch in bench.measure(member).launches:
            for effective in launch.effective:
                assert expected == (effective["ddp"]["broadcasts"] > 0), member.id


@pytest.mark.parametrize("pair", pairs(_KNOBS))
def test_memory_of_each_knob_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """A view into the buckets saves a copy of the gradients: the peak beside that of the defaults."""
    if pair.new.variant.device == "cpu":
        pytest.skip("nobody counts what torch allocates on a CPU")
    turned, base = bench.measure(pair.new), bench.measure(pair.base)
    limits.tell("knob_memory", "B", turned, peak_of(turned), [peak_in_words(turned, base)])
