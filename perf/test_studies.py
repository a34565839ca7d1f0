"""Studies: time against the size of a network and of a batch, memory against batch, use of the matrix peak."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import pytest

from perf.catalogue import Group, Member, marks, members, whole_groups
from perf.launch.failure import LaunchFailed
from perf.portable import card_of, medians
from perf.rates import trained
from perf.suite.judge import Judge
from perf.suite.source import Measurement, alike
from perf.verdict.studies import larger_network_in_words, line_through
from perf.verdict.words import rounded
from perf.workloads import WORKLOADS

NETWORKS = (
    ("resnet152_tiny", "resnet50_tiny", "full"),
    ("resnet152", "resnet50", "synthetic"),
    ("resnet152_224", "resnet50_224", "synthetic"),
    ("resnet152_224", "resnet50_224", "full"),
)
"""Larger and smaller network, and the mode: on the real loader a smaller one may be no faster at all."""


def _alone(workload: str, mode: str) -> Member:
    """Return the plain variant of a workload in one process: nothing about it is asked for."""
    found = members(workload, strategy=("single",), mode=(mode,))
    plain = [
        m
        for m in found
        if m.variant.precision == "fp32"
        and m.variant.loader == "native"
        and (
            m.variant.workers,
            m.variant.batch,
            m.variant.optimizations,
            m.variant.optimizer,
            m.variant.schedule,
        )
        == (None, None, (), "", "")
    ]
    return plain[0]


def _beyond_smoke(member: Member) -> Member:
    """Return a member that profile smoke has no time for: its two groups may be measured by two processes."""
    return dataclasses.replace(member, smoke=False)


_SIZES = [(_beyond_smoke(_alone(large, mode)), _alone(small, mode)) for large, small, mode in NETWORKS]
_PEAK = [
    pytest.param(_beyond_smoke(p.values[0]), p.values[1], id=p.id, marks=p.marks)
    for p in trained()
    if p.values[0].variant.mode == "synthetic" and p.values[0].variant.strategy == "single"
]


@pytest.mark.parametrize(
    ("large", "small"),
    [pytest.param(large, small, id=large.id, marks=marks([large, small])) for large, small in _SIZES],
)
def test_a_larger_network_is_told_against_its_work(
    large: Member, small: Member, bench: Any, limits: Judge
) -> None:
    """ResNet-152 beside ResNet-50 at an equal batch: the ratio of steps, of parameters and of operations."""
    one, other = alike(bench.measure(large), bench.measure(small))
    assert one.first.batch_size == other.first.batch_size
    known = [WORKLOADS[m.variant.workload] for m in (large, small)]
    time = statistics.median(one.step_times) / statistics.median(other.step_times)
    words = larger_network_in_words(
        time, known[0].parameters / known[1].parameters, known[0].flops / known[1].flops
    )
    limits.tell("larger_network", "ratio", one, time, [words])


@pytest.mark.parametrize(("training", "cards"), _PEAK)
def test_use_of_the_matrix_peak_is_told(
    training: Member, cards: tuple[Member, ...], bench: Any, limits: Judge
) -> None:
    """Model FLOP utilization: operations that the network needs, over the rate of products measured on this card."""
    measured = bench.measure(training)
    card = card_of([launch for c in cards for launch in bench.measure(c).launches], training.variant.device)
    found = medians(measured.launches, card).get("matrix")
    if found is None:
        pytest.skip(f"the rate of products in {training.variant.precision} was not measured here")
    known = WORKLOADS[training.variant.workload]
    said = (
        f"{known.flops / 1e9:.4g} GFLOP a sample, forward and backward, each multiply-add counted as two: "
        f"{found:.1%} of what this machine's own product reaches."
    )
    limits.tell("model_flop_utilization", "share", measured, found, [said])


@pytest.mark.parametrize("group", whole_groups("batches"))
def test_time_and_memory_against_the_batch_are_told(group: Group, bench: Any, limits: Judge) -> None:
    """Twice the batch: which part of twice the time, and how much memory; a batch that does not fit is named."""
    fitting: dict[int, Measurement] = {}
    sentences = []
    for member in group.members:
        try:
            fitting[member.variant.batch_size] = bench.measure(member)
        except LaunchFailed as error:
            if "memory is full" not in str(error):
                raise
            sentences.append(
                f"A batch of {member.variant.batch_size} does not fit: the GPU's memory is full."
            )
    if not fitting:
        pytest.fail(f"no batch of {group.name} fits: {' '.join(sentences)}")
    for batch, one in sorted(fitting.items()):
        peak = peak_of(one)
        memory = "" if peak is None else f", {peak / 2**20:.4g} MiB"
        rate = statistics.median(one.throughputs)
        sentences.append(f"Batch {batch}: {rounded(rate)} samples/s{memory}.")
    peaks = {batch: peak for batch, one in fitting.items() if (peak := peak_of(one)) is not None}
    if len(peaks) > 1:
        line = line_through(list(peaks), list(peaks.values()))
        sentences.append(
            f"Memory is {line.fixed / 2**20:.4g} MiB and {line.each / 2**20:.4g} MiB a sample; "
            f"`python -m perf.training.fit` finds the largest batch that fits by trying."
        )
    largest = max(fitting)
    gain = statistics.median(fitting[largest].throughputs) / statistics.median(
        fitting[min(fitting)].throughputs
    )
    limits.tell("larger_batch", "ratio", fitting[largest], gain, sentences)


def peak_of(measured: Measurement) -> float | None:
    """Return the median over launches of the largest peak of a device in bytes; None on a CPU."""
    found = [
        max(peaks.values()) for launch in measured.launches for peaks in launch.peak_memory_bytes if peaks
    ]
    return statistics.median(found) if found else None
