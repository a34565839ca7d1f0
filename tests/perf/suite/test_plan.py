from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.catalogue import GROUPS
from perf.contract import FEWEST_WARM_UP, FEWEST_WITH_CAPTURE
from perf.profiles import PROFILES
from perf.suite.plan import (
    FIRST_SEED,
    Context,
    build_spec,
    has_phases,
    in_the_tutorials_loop,
    launches_planned,
    order_of_round,
)
from perf.training.clocks import HostClock
from perf.training.meter import Meter
from perf.variants import Variant


@given(st.integers(1, 7), st.integers(0, 50))
def test_a_round_launches_every_member_once(count, round_number):
    """An order is a permutation, whatever the number of members and the round."""
    members = list(range(count))

    assert members == sorted(order_of_round(members, round_number))


@pytest.mark.parametrize(("count", "cycle"), [(2, 2), (3, 6), (4, 8), (5, 10)])
def test_over_a_cycle_every_member_stands_everywhere_equally_often(count, cycle):
    """Drift within a round then hits all members alike."""
    places = Counter(
        (place, member) for r in range(cycle) for place, member in enumerate(order_of_round(range(count), r))
    )

    assert {cycle // count} == set(places.values())
    assert count * count == len(places)


def test_two_members_alternate():
    """A pair is launched ABBA."""
    assert ["AB", "BA", "AB", "BA"] == ["".join(order_of_round("AB", r)) for r in range(4)]


def context(profile="quick", cores=16):
    return Context("run", PROFILES[profile], cores, "/cache", None)


@pytest.mark.parametrize(
    "name", sorted(name for name, group in GROUPS.items() if group.question != "compare")
)
def test_members_of_a_group_are_fed_alike(name):
    """Workers and threads are equal for all members of a group, so that a ratio compares one thing only."""
    group = GROUPS[name]
    specs = [
        build_spec(context(), m, launch="l", round_number=0, out_dir=Path("/out"))
        for m in group.members
        if m.variant.workers is None and m.variant.loader == "native"
    ]

    assert len({s.threads for s in specs}) <= 1
    assert len({s.workers for s in specs}) <= 1


def test_members_of_a_round_share_a_seed_and_rounds_differ():
    """Both sides of a comparison train on the same batches; the next round on others."""
    member = GROUPS["loader@mnist_cnn-cpu"].members[0]
    seeds = [
        build_spec(context(), member, launch="l", round_number=r, out_dir=Path("/o")).seed for r in range(3)
    ]

    assert [FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2] == seeds


def test_smoke_judges_one_pair_and_looks_at_the_rest():
    """In smoke one pair has 5 launches a side, every other group one."""
    inside = [g for g in GROUPS.values() if "cpu" in g.name and "smoke" in g.profiles]
    counts = {g.name: launches_planned(g, PROFILES["smoke"]) for g in inside}

    assert ["loader@mnist_cnn-cpu"] == [name for name, count in counts.items() if count == 5]
    assert {1, 5} == set(counts.values())


def test_smoke_gives_every_rank_one_thread():
    """One thread a rank: with two, a busy neighbour makes a step on two cores several times slower."""
    for member in GROUPS["ddp@mnist_cnn-cpu"].members:
        assert (
            1 == build_spec(context("smoke"), member, launch="l", round_number=0, out_dir=Path("/o")).threads
        )


def test_smoke_counts_epochs_at_the_published_batch():
    """Sizes are small in smoke, but the epoch whose steps and samples are counted is the published one."""
    (member,) = GROUPS["samples@mnist_cnn-cpu"].members
    spec = build_spec(context("smoke"), member, launch="l", round_number=0, out_dir=Path("/o"))

    assert (64, None) == (spec.batch_size, spec.epoch_samples)


def test_epochs_of_enlarged_images_are_shortened():
    """Three whole epochs of ResNet-152 at 224 take seven minutes of a GPU; 200 steps tell the same."""
    found = {
        member.variant.workload: build_spec(
            context("full"), member, launch="l", round_number=0, out_dir=Path("/o")
        ).epoch_samples
        for name, group in GROUPS.items()
        if name.startswith("epochs@") and name.endswith("-gpu")
        for member in group.members
    }

    assert {
        "mnist_cnn": None,
        "resnet50": None,
        "resnet152": None,
        "unet3d": None,
        "resnet50_224": 12_800,
        "resnet152_224": 12_800,
    } == found


@pytest.mark.parametrize(
    ("trace", "planted", "expected"), [("", False, 0.4), ("torch", False, 0.0), ("", True, 0.0)]
)
def test_a_warm_up_on_a_gpu_may_be_shortened_but_not_before_a_trace_or_a_fault(trace, planted, expected):
    """A trace is of steps behind the whole warm-up, and a fault takes a step's length in it."""
    member = GROUPS["loader@unet3d-gpu"].members[0]
    where = dataclasses.replace(context("full"), whole_warm_up=planted)
    spec = build_spec(where, member, launch="l", round_number=0, out_dir=Path("/o"), trace=trace)

    assert expected == spec.warmup_seconds


def test_a_gpu_window_has_at_least_50_steps_and_2_seconds():
    """At least 50 steps and 2 s, behind 20 steps of warm-up or 10 that last 0.4 s; 20 where a graph is captured."""
    for profile in PROFILES.values():
        sizes = profile.sizes_for("cuda", "window")
        assert sizes.timed_steps >= 50
        assert sizes.min_seconds >= 2.0
        assert sizes.warmup_steps >= FEWEST_WITH_CAPTURE >= 20
        assert sizes.warmup_seconds / FEWEST_WARM_UP >= 0.04


@pytest.mark.parametrize(("plan", "expected"), [("window", True), ("epochs", True), ("audit", False)])
def test_models_are_kept_of_what_trains(plan, expected):
    """--save-model reaches every launch that trains; an audit only counts samples."""
    member = next(m for g in GROUPS.values() for m in g.members if m.plan == plan)
    how = dataclasses.replace(context(), save_model=True)
    spec = build_spec(how, member, launch="l", round_number=0, out_dir=Path("/out"))

    assert expected is spec.save_model


@pytest.mark.parametrize("name", ["rates@machine-gpu", "links@machine-cpu"])
def test_a_machine_s_rates_are_launched_once_unless_more_is_asked_for(name):
    """A card repeats each rate within its launch; five cards of 20 s each are for whoever wants references."""
    group = GROUPS[name]

    assert {1} == {launches_planned(group, profile) for profile in PROFILES.values()}
    assert 5 == launches_planned(group, PROFILES["quick"].with_launches(5))


def test_a_machine_s_launch_has_a_time_for_each_rate_and_all_threads_of_its_cores():
    """Nothing is loaded, so no core is kept for loader workers; between ranks each has its part."""
    context = Context("run", PROFILES["quick"], 8, "/cache", None)
    (one,), (several,) = GROUPS["rates@machine-cpu"].members, GROUPS["links@machine-cpu"].members
    specs = [
        build_spec(context, m, launch="main-0001", round_number=0, out_dir=Path("/out"))
        for m in (one, several)
    ]

    assert ["rates", "rates"] == [spec.plan for spec in specs]
    assert [(8, 0), (4, 0)] == [(spec.threads, spec.workers) for spec in specs]
    assert all(spec.min_seconds > 0 and spec.timed_steps == 0 for spec in specs)


def test_a_window_for_stalls_is_never_cut_short():
    """A comparison of mnist_cnn on a GPU takes all 400 steps of its window, one of unet3d no more than fill 4 s."""
    small, large = (
        build_spec(
            context("compare"),
            GROUPS[f"compare@{variant}-synthetic"].members[0],
            launch="l",
            round_number=0,
            out_dir=Path("/o"),
        )
        for variant in ("mnist_cnn-single-1gpu-fp32-native", "unet3d-single-1gpu-fp32-native")
    )

    assert (400, 0.0) == (small.timed_steps, small.max_seconds)
    assert (100, 4.0) == (large.timed_steps, large.max_seconds)


@pytest.mark.parametrize("variant", ["mnist_cnn-single-1gpu-fp32-native", "unet3d-single-1gpu-fp32-native"])
def test_a_profile_of_operators_is_of_few_steps(variant):
    """Telling the events of a hundred steps of a large network apart takes a minute, also where stalls are watched."""
    spec = build_spec(
        context("compare"),
        GROUPS[f"compare@{variant}-synthetic"].members[0],
        launch="l",
        round_number=0,
        out_dir=Path("/o"),
        operators=True,
    )

    assert (24, 0.0, 0.0) == (spec.timed_steps, spec.min_seconds, spec.max_seconds)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("extra", [{}, {"phases": True}, {"operators": True}, {"trace": "torch"}])
def test_every_window_that_is_planned_is_one_that_a_worker_can_time(profile, extra):
    """The rank's meter takes the window of every planned launch, those beside the judged ones among them."""
    chosen = PROFILES[profile]
    groups = [group for group in GROUPS.values() if launches_planned(group, chosen)]
    members = {m.id: m for group in groups for m in group.members if m.plan in ("window", "epochs")}.values()
    for planned in (context(profile), dataclasses.replace(context(profile), profile=chosen.with_stalls())):
        for member in members:
            spec = build_spec(planned, member, launch="l", round_number=0, out_dir=Path("/o"), **extra)
            Meter(
                HostClock(),
                warmup_steps=spec.warmup_steps,
                rewarm_steps=0,
                timed_steps=spec.timed_steps,
                min_seconds=spec.min_seconds,
                max_seconds=spec.max_seconds,
                stop_when_timed=True,
            )


def test_stalls_of_every_network_are_watched_where_asked():
    """With --stalls a step of unet3d has a window of 400 steps too, in a comparison on a GPU."""
    profile = PROFILES["compare"].with_stalls()
    spec = build_spec(
        Context("run", profile, 8, "/cache", None),
        GROUPS["compare@unet3d-single-1gpu-fp32-native-synthetic"].members[0],
        launch="l",
        round_number=0,
        out_dir=Path("/o"),
    )

    assert (400, 0.0) == (spec.timed_steps, spec.max_seconds)


@pytest.mark.parametrize(
    ("variant", "phases", "tutorials"),
    [
        ("mnist_cnn-single-1gpu-fp32-native", True, True),
        ("unet3d-single-1gpu-bf16-native-fused.autotune-synthetic", True, False),
        ("mnist_cnn-single-1gpu-bf16-native-channels_last.cuda_graph-synthetic", False, False),
        ("mnist_cnn-single-1gpu-fp32-native-io", False, False),
        ("machine-single-1gpu", False, False),
    ],
)
def test_what_can_be_timed_in_parts(variant, phases, tutorials):
    """Every step but that of a CUDA graph has phases; line profiles are of the tutorials' loop alone."""
    found = Variant.parse(variant)
    assert (phases, tutorials) == (has_phases(found), in_the_tutorials_loop(found))
