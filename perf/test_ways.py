"""DataParallel against DistributedDataParallel against one process: speed, efficiency, memory, and autotuning."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from perf.catalogue import Pair, groups, pairs
from perf.contract import LaunchRecord
from perf.groups_parallel import WAYS
from perf.limits import AUTOTUNED_DP
from perf.suite.judge import Judge
from perf.suite.kept import NotStored
from perf.suite.source import Measurement
from perf.suite.ways import AUTOTUNING, PUBLISHED, memory_in_words, shares_in_words, way_in_words
from perf.verdict.moved import phases_of
from perf.verdict.outcome import Judgement, Verdict

_AUTOTUNED = [Pair(g, g.members[1], g.members[0], "autotune") for g in groups("autotuned_dp")]
_WAYS = [
    Pair(g, g.member(way), g.member("single"), way)
    for question in WAYS
    for g in groups(question)
    for way in ("dp", "ddp")
]
_SHARES = [
    pair
    for pair in _WAYS
    if pair.new.variant.workload == "mnist_cnn"
    or (pair.group.question == "dp" and pair.new.variant.workload != "unet3d")
]
"""A launch in phases takes as long as one that is judged, 43 s of `resnet152` by DataParallel on four H200s. Beyond two
GPUs one network tells how the share grows; `unet3d`, whose device holds it up, is none of those that it grows with."""

_OTHERS = {
    question: [Pair(g, m, g.members[0], m.variant.strategy) for g in groups(question) for m in g.members[1:]]
    for question in ("ways_epochs", "published")
}


@pytest.mark.parametrize("pair", pairs(_WAYS))
def test_speed_up_and_efficiency_are_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """At an equal batch and equal workers a GPU: what two GPUs give over one, by DataParallel and by DDP."""
    several, single = bench.measure(pair.new), bench.measure(pair.base)
    assert several.first.batch_size == single.first.batch_size
    assert several.first.workers == single.first.workers
    assert several.first.optimizations == single.first.optimizations
    limits.tell("speed_up", "ratio", several, speed_up(several, single), [way_in_words(several, single)])


@pytest.mark.parametrize("pair", pairs(_WAYS))
def test_memory_on_each_gpu_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """DataParallel's first GPU holds the outputs, the gradients' sum and the optimizer's state; DDP's are alike."""
    several = bench.measure(pair.new)
    peaks = peaks_of(several)
    assert pair.new.variant.gpus == len(peaks), f"the memory of {sorted(peaks)} was counted"
    uneven = max(peaks.values()) / min(peaks.values())
    limits.tell(
        "uneven_memory",
        "ratio",
        several,
        uneven,
        [memory_in_words(pair.label, peaks, windows=several.in_windows)],
    )


@pytest.mark.beside(extra="phases")
@pytest.mark.parametrize("pair", pairs(_SHARES))
def test_forward_share_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """Under DataParallel replicating, scattering and gathering are part of the forward pass: its share of a step."""
    try:
        shares = {
            member.variant.strategy: forward_share(bench.profiled(member, "phases"))
            for member in (pair.new, pair.base)
        }
    except NotStored as reason:
        pytest.skip(str(reason))
    several = bench.measure(pair.new)
    limits.tell("forward_share", "share", several, shares[pair.label], [shares_in_words(shares)])


@pytest.mark.parametrize("pair", pairs(_AUTOTUNED))
def test_autotuning_does_not_slow_dataparallel(pair: Pair, limits: Judge) -> None:
    """Autotuning by cuDNN, there to make steps faster, does not make DataParallel's several times slower."""

    def second(sides: Sequence[Measurement], found: Judgement) -> Judgement:
        if found.verdict is not Verdict.FAIL:
            return found
        return dataclasses.replace(found, reasons=(AUTOTUNING, *found.reasons))

    limits.ratio(pair, AUTOTUNED_DP, can_be_faster=True, second=second)


@pytest.mark.parametrize("pair", pairs(_OTHERS["ways_epochs"]))
def test_whole_epochs_of_the_three_ways_are_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """Seconds of a later epoch, validation apart, with DataParallel and with DDP, beside one process."""
    several = bench.measure(pair.new)
    seconds, base = later_epoch(several), later_epoch(bench.measure(pair.base))
    where = f"with {pair.label} on {several.first.gpus} GPUs"
    said = f"A later epoch takes {seconds:.4g} s {where}, {base:.4g} s in one process."
    limits.tell("epoch_speed_up", "ratio", several, base / seconds, [said])


@pytest.mark.parametrize("pair", pairs(_OTHERS["published"]))
def test_the_ways_as_they_were_published_are_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """The sources' own settings, beside the fair ones: their workers and batches differ, so the ratio is confounded."""
    several, single = bench.measure(pair.new), bench.measure(pair.base)
    words = [way_in_words(several, single), PUBLISHED]
    limits.tell("published_speed_up", "ratio", several, speed_up(several, single), words)


def speed_up(several: Measurement, single: Measurement) -> float:
    """Return the throughput of a way to use several GPUs over that of one process."""
    return statistics.median(several.throughputs) / statistics.median(single.throughputs)


def forward_share(record: LaunchRecord) -> float:
    """Return the part of a step that the first rank spends in the forward pass, by medians of its phases."""
    seconds = phases_of(record)[0]
    return seconds["forward"] / sum(seconds.values())


def later_epoch(measured: Measurement) -> float:
    """Return the median over launches of the median later epoch, in seconds."""
    return statistics.median(statistics.median(launch.epoch_seconds[1:]) for launch in measured.launches)


def peaks_of(measured: Measurement) -> dict[str, float]:
    """Return the median over launches of each device's peak of allocated memory, in bytes, by rank and device."""
    found: dict[str, list[int]] = {}
    for launch in measured.peaks(windows=measured.in_windows):
        for rank, peaks in enumerate(launch):
            for device, peak in peaks.items():
                found.setdefault(f"rank {rank} {device}", []).append(peak)
    return {name: statistics.median(values) for name, values in found.items()}
