"""What bounds each run: the loader alone, training alone, both; how many loader workers, and cores, are enough."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Group, Pair, groups, pairs, variants, whole_groups
from perf.suite.judge import Judge
from perf.suite.source import Measurement
from perf.verdict.bound import bound_of, knee
from perf.verdict.words import rounded

_CORES = [
    Pair(g, m, g.members[0], f"{m.variant.workers}-workers-{m.variant.cores}-cores")
    for g in groups("cores")
    for m in g.members[1:]
]


@pytest.mark.parametrize("group", whole_groups("loader"))
def test_what_bounds_the_run_is_told(group: Group, bench: Any, limits: Judge) -> None:
    """IO, SYNTHETIC and FULL are whole series, and what bounds the run follows from them."""
    full, synthetic, alone = (
        bench.measure(group.member("single", mode=mode)) for mode in ("full", "synthetic", "io")
    )
    found = bound_of(full.throughputs, synthetic.throughputs, alone.throughputs, synthetic.drain_steps)
    limits.tell("full_over_slower", "ratio", full, found.efficiency, [found.sentence])


@pytest.mark.parametrize("group", whole_groups("workers"))
def test_the_knee_of_the_worker_sweep_is_told(group: Group, bench: Any, limits: Judge) -> None:
    """The smallest number of workers that gives nearly the best throughput, and whether more of them give less."""
    measured = {m.variant.workers: bench.measure(m) for m in group.members}
    # More workers than cores are asked for by name only, run, and are never judged.
    fit = {n: m for n, m in measured.items() if n is not None and "oversubscribed" not in m.first.flags}
    if not fit:
        pytest.skip(f"every count of workers of {group.name} is more than the cores allowed")
    rates = {n: statistics.median(m.throughputs) for n, m in fit.items()}
    found, falls = knee(rates)
    table = ", ".join(f"{n}: {rate:.4g}" for n, rate in sorted(rates.items()))
    sentences = [f"{found} workers give nearly the best throughput (workers: samples/s, {table})."]
    if falls:
        sentences.append(
            f"{max(rates)} workers give less than that: they take cores from the training process."
        )
    limits.tell("knee", "workers", fit[found], float(found), sentences)


@pytest.mark.parametrize("pair", pairs(_CORES))
def test_what_cores_bring_is_told(pair: Pair, bench: Any, limits: Judge) -> None:
    """Throughput on some cores over that on one, and what waits there: cores that nobody uses bring nothing."""
    base, more = bench.measure(pair.base), bench.measure(pair.new)
    for measured in (base, more):
        # Tied, or what is compared is not what the names say.
        tied = {len(rank["core_ids"]) for rank in measured.first.threads}
        assert {measured.member.variant.cores} == tied, (
            f"the ranks of {measured.member.id} ended on {tied} cores each: something in the stack binds them again"
        )
    alone, rate = (statistics.median(measured.throughputs) for measured in (base, more))
    ours, theirs = more.member.variant, base.member.variant
    wait = statistics.median(launch.wait_share or 0.0 for launch in more.launches)
    sentence = (
        f"{ours.workers} workers on {ours.cores} cores give {rounded(rate)} samples/s, {rate / alone:.2f} times "
        f"{theirs.workers} on {theirs.cores}; {wait:.0%} of the window waits for them."
    )
    limits.tell("throughput_on_cores", "ratio", more, rate / alone, [sentence])


@pytest.fixture(scope="session", params=variants(mode=("io",), plan=("window",)))
def alone(request: pytest.FixtureRequest, bench: Any) -> Measurement:
    """A loader alone, timed."""
    return bench.measure(request.param)  # type: ignore[no-any-return]


def test_the_rate_of_a_loader_alone_is_told(alone: Measurement, limits: Judge) -> None:
    """What a loader gives when nobody trains, and that it was this loader that gave it."""
    for launch in alone.launches:
        assert {alone.member.variant.loader} == {
            effective["loader"]["loader"] for effective in launch.effective
        }
        assert launch.samples > 0
    rates = alone.throughputs
    limits.tell("loader_alone", "samples/s", alone, statistics.median(rates), [])
