"""Launches for profiles: of which members they are made, and that no verdict rests on one."""

from __future__ import annotations

import pytest
from launch_records import PAIR_GROUP, record_of

from perf import records
from perf.catalogue import GROUPS
from perf.launch.failure import NotAvailable
from perf.profiles import PROFILES
from perf.suite.bench import Bench
from perf.suite.plan import Context, takes_extra

SINGLE, DDP1, _ = PAIR_GROUP.members


def test_extra_launches_are_recorded_and_never_judged(bench, launched, tmp_path):
    """A line profile adds one launch a variant, which is in the records and in no measurement."""
    source = bench(extras=("line-profile",))

    assert 5 == len(source.measure(SINGLE).launches)
    assert 3 == sum(s.line_profile for s in launched)
    assert 18 == len(records.Run(tmp_path / "run").records())


def test_only_what_a_selected_test_names_is_profiled(bench, launched, tmp_path):
    """The group is measured whole, whatever is selected; a profile is of no use to anybody else."""
    source = bench(extras=("line-profile", "phases"), named=lambda member: member == DDP1)
    source.measure(SINGLE)

    assert 15 == sum(not (s.line_profile or s.phases) for s in launched)
    assert [DDP1.variant.id] == [s.variant for s in launched if s.line_profile]
    assert [DDP1.variant.id] == [s.variant for s in launched if s.phases]
    events = records.read_lines(tmp_path / "run" / records.EVENTS, records.Event)
    assert [17] == [event.total for event in events if event.kind == "planned"]


def test_what_has_no_such_profile_is_not_launched_for_it(tmp_path, launched):
    """Neither with its group nor for its test, which is skipped with the reason."""
    group = GROUPS["ladder@mnist_cnn-gpu"]
    half = next(m for m in group.members if m.variant.precision == "bf16")

    def launch(spec):
        launched.append(spec)
        member = next(m for m in group.members if m.variant.id == spec.variant)
        return record_of(member, launch=spec.launch, trace_facts=[{}] if spec.trace else [])

    context, run = Context("run", PROFILES["full"], 2, "/cache", None), records.Run.create(tmp_path, "run")
    source = Bench(context, run, launch, lambda m: True, lambda record: "fine", extras=("torch-trace",))
    source.measure(half)
    traced = [spec for spec in launched if spec.trace]

    assert {"fp32", "tf32"} == {spec.precision for spec in traced}
    with pytest.raises(NotAvailable, match="torch-trace: .* a step of their own"):
        source.profiled(half, "torch-trace")
    assert traced == [spec for spec in launched if spec.trace]


def test_which_variants_have_which_profiles():
    """A rung in half precision has a step of its own, and a CUDA graph is replayed as one piece."""
    rungs = GROUPS["ladder@mnist_cnn-gpu"].members
    taken = {
        extra: {m.variant.precision for m in rungs if takes_extra(m.variant, extra)}
        for extra in ("torch-trace", "phases")
    }

    assert {"fp32", "tf32"} == taken["torch-trace"]
    assert {"fp32", "tf32", "fp16", "bf16"} == taken["phases"]
    assert not any(
        "cuda_graph" in m.variant.optimizations and takes_extra(m.variant, "phases") for m in rungs
    )


def test_an_extra_launch_that_fails_takes_no_verdict_away(bench):
    """Where a profile fails, as on a full disk, the judged launches are there."""
    source = bench(extras=("line-profile",), fail_when=lambda spec: spec.line_profile)

    assert 5 == len(source.measure(SINGLE).launches)
