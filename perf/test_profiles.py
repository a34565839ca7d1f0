"""Only with ``--torch-trace``, ``--nsys``, ``--line-profile`` or ``--phases``: what profiles hold and cost."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Member, variants
from perf.report.kernels import PARTS, kernels_in_words, names_in_trace
from perf.report.lines import launch_profiles, loader_share
from perf.suite.judge import Judge
from perf.suite.kept import NotStored


@pytest.fixture(scope="session", params=variants(mode=("full",)))
def member(request: pytest.FixtureRequest) -> Member:
    """What is profiled: every variant that trains on its real loader."""
    return request.param  # type: ignore[no-any-return]


def profiled(bench: Any, member: Member, asked: tuple[str, ...], kind: str) -> Any:
    """Return the launch for a profile, or skip where it was not asked for, or not taken by the stored run."""
    if kind not in asked:
        pytest.skip(f"no {kind} was asked for; --{kind} takes one more launch a variant")
    try:
        return bench.profiled(member, kind)
    except NotStored as reason:
        pytest.skip(str(reason))


def test_a_line_profile_counts_every_step(
    member: Member, bench: Any, limits: Judge, profiles: tuple[str, ...], run_folder: Any
) -> None:
    """On each rank a step's lines ran once a step (938 times an epoch of MNIST); the loader's share is told."""
    launch = profiled(bench, member, profiles, "line-profile")
    ranks = launch_profiles(launch, run_folder)
    for rank, steps in zip(ranks, launch.total_steps, strict=True):
        hits = [line.hits for line in rank.lines if line.line not in rank.loader_lines]
        # The loop's body; what surrounds it is run once an epoch.
        assert steps == max(hits), f"rank {rank.rank} trained {steps} steps"
        assert hits.count(steps) >= 6
    share = loader_share(ranks[0])
    said = f"The loader's line takes {share:.1%} of the time of train, the profiler's own with it."
    limits.tell("loader_line_share", "share", bench.measure(member), share, [said])


def test_a_trace_holds_every_part_of_a_step(
    member: Member, bench: Any, profiles: tuple[str, ...], run_folder: Any
) -> None:
    """On each rank: forward, backward, data, optimizer, the loader's own range, and DDP's all-reduces as counted."""
    launch = profiled(bench, member, profiles, "torch-trace")
    assert launch.ranks_per_node * launch.nodes == len(launch.traces)
    for rank, name in enumerate(launch.traces):
        found = names_in_trace(run_folder / name)
        missing = [part for part in PARTS if part not in found]
        assert not missing, f"the trace of rank {rank} lacks {', '.join(missing)}"
        if member.variant.loader == "native":
            assert any(seen.startswith("enumerate(DataLoader)") for seen in found)
        if member.variant.strategy == "ddp":
            assert any("allreduce" in seen or "all_reduce" in seen for seen in found)
            counted = launch.effective[rank]["ddp"]["all_reduces"]
            assert counted == launch.trace_facts[rank]["all_reduces"]


def test_what_takes_the_time_is_told(
    member: Member, bench: Any, limits: Judge, profiles: tuple[str, ...]
) -> None:
    """The kernels (on a CPU the operators) that take the most, and the part of the time that the device was busy."""
    launch = profiled(bench, member, profiles, "torch-trace")
    facts = launch.trace_facts[0]
    assert facts["top"], "the trace holds no kernel"
    on_gpu = member.variant.device == "cuda"
    assert on_gpu == (facts["device_busy_share"] is not None)
    share = facts["device_busy_share"] if on_gpu else facts["top"][0]["share"]
    metric = "device_busy_share" if on_gpu else "largest_operator_share"
    limits.tell(metric, "share", bench.measure(member), share, kernels_in_words(facts))


def test_a_capture_by_nsys_is_not_empty(member: Member, bench: Any, profiles: tuple[str, ...]) -> None:
    """Nsight Systems was told where to begin and end, and its file holds the ranges of the steps."""
    launch = profiled(bench, member, profiles, "nsys")
    assert 1 == len(launch.traces)
    assert all(facts["steps"] > 0 for facts in launch.trace_facts)


def test_what_a_profiler_costs_is_told(
    member: Member, bench: Any, limits: Judge, profiles: tuple[str, ...]
) -> None:
    """A profiled launch's step over that of the launches that are judged: why it is never one of them."""
    for kind in profiles:
        launch = profiled(bench, member, profiles, kind)
        assert kind == launch.profiled
        plain = bench.measure(member)
        assert launch.launch not in {judged.launch for judged in plain.launches}
        # Of a trace the window holds steps that were not traced.
        traced = launch.trace_facts[0].get("step_seconds") if kind == "torch-trace" else None
        step = traced or launch.median_step_seconds
        ratio = step / statistics.median(judged.median_step_seconds for judged in plain.launches)
        said = f"Under {kind} a step takes {step * 1e3:.4g} ms, {ratio:.3g} times as long as without."
        limits.tell(f"cost_of_{kind.replace('-', '_')}", "ratio", plain, ratio, [said])
