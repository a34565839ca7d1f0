"""Groups, their members and pairs, and the way from a test's node id back to its group."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from perf.catalogue import (
    COMPARING,
    GROUPS,
    Group,
    Member,
    Pair,
    group_of_node_id,
    groups,
    home,
    marks,
    members,
    pairs,
    variants,
)
from perf.groups import declared
from perf.profiles import PROFILES
from perf.suite.feeding import batches_an_epoch, share_for
from perf.suite.plan import launches_planned, order_of_round
from perf.variants import Variant
from perf.workloads import SUBJECTS, WORKLOADS

ROOT = Path(__file__).parents[2]

DECLARED = {name: group for name, group in GROUPS.items() if not group.question.startswith("compare")}
"""Groups of one stack; each variant that trains has a comparison besides."""

each_group = pytest.mark.parametrize("group", DECLARED.values(), ids=DECLARED.keys())


@pytest.fixture(scope="module")
def node_ids() -> list[str]:
    """The node id of every test of the full profile, as pytest itself collects them."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "perf",
            "--collect-only",
            "-q",
            "--profile",
            "full",
            "-p",
            "no:cacheprovider",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


# --- groups


def test_groups_are_found_under_their_own_unique_names():
    """The table's keys are the groups' names, and each question is asked once of a workload and kind of device."""
    generated = [g for w in SUBJECTS for device in ("cpu", "cuda") for g in declared(w, device)]

    assert len(generated) == len(DECLARED)
    assert all(name == group.name for name, group in GROUPS.items())


@each_group
def test_members_belong_to_their_group_and_differ(group):
    """A member knows its group, and none stands in it twice."""
    assert {group.name} == {m.group for m in group.members}
    assert len(group.members) == len({m.id for m in group.members})
    assert all(m.variant == Variant.parse(m.variant.id) for m in group.members)


@each_group
def test_a_group_measures_one_workload_on_one_kind_of_device(group):
    """Members differ in how a workload is run, never in what runs or where: their ratio has one cause."""
    assert 1 == len({(m.variant.workload, m.variant.device) for m in group.members})


@each_group
@settings(deadline=None, max_examples=30)
@given(cores=st.integers(1, 256), data=st.data())
def test_members_are_fed_alike(group, cores, data):
    """Workers a device and threads a rank are equal for all members that leave them to the suite."""
    profile = data.draw(st.sampled_from(sorted(group.profiles)))
    for loader in {m.variant.loader for m in group.members}:
        default = [
            m
            for m in group.members
            if m.variant.loader == loader and m.variant.workers is None and m.variant.threads is None
        ]
        shares = [share_for(m, PROFILES[profile], cores) for m in default]

        assert 1 >= len({(share.workers, share.threads) for share in shares})


@each_group
def test_every_profile_has_sizes_for_every_member(group):
    """No member asks for a plan that a profile has no sizes for."""
    for name in group.profiles:
        for member in group.members:
            sizes = PROFILES[name].sizes_for(member.variant.device, member.plan)
            # Rates have a time for each and no steps; an audit counts samples.
            assert (sizes.timed_steps > 0) is (member.plan not in ("rates", "audit"))
            assert (sizes.min_seconds > 0) or member.plan != "rates"
            assert (member.plan in ("window", "rates")) is (sizes.epochs == 0)


@each_group
def test_judged_groups_get_their_launches(group):
    """What a stack is accepted by has its launches in quick and full; the rest has them where they are asked for."""
    for name in ("quick", "full"):
        profile = PROFILES[name]
        accepted = group.judged and not group.once and (name == "quick" or "quick" in group.profiles)
        assert (profile.launches if accepted else 1) == launches_planned(group, profile)
        assert (7 if group.judged else 1) == launches_planned(group, profile.with_launches(7))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_smoke_judges_one_pair_a_device(device):
    """The small profile has time for one judged pair."""
    judged = [
        g.name
        for g in GROUPS.values()
        if g.members[0].variant.device == device
        and "smoke" in g.profiles
        and launches_planned(g, PROFILES["smoke"]) > 1
    ]

    assert [f"loader@mnist_cnn-{'gpu' if device == 'cuda' else 'cpu'}"] == judged


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_smoke_trains_every_workload_alone_and_on_two_ranks(workload):
    """On the CPU each network, tiny where it is large, is launched in one process and under DDP, on its real loader."""
    if "cpu" not in WORKLOADS[workload].devices:
        assert f"{workload}_tiny" in WORKLOADS or f"{workload.partition('_')[0]}_tiny" in WORKLOADS
        return
    trained = {
        m.variant.strategy
        for g in GROUPS.values()
        for m in g.members
        if m.variant.workload == workload and m.variant.device == "cpu" and m.variant.mode == "full"
        if m.plan == "window" and m.runs_in("smoke")
    }
    assert {"single", "ddp"} == trained


def test_a_member_is_looked_up_by_what_tells_it_apart():
    """Strategy, mode and count find exactly one member, or the error says how many there are."""
    group = GROUPS["ddp@mnist_cnn-cpu"]

    assert "mnist_cnn-ddp-2cpu-gloo-fp32-native-synthetic" == group.member("ddp", count=2).id
    with pytest.raises(LookupError, match=r"ddp@mnist_cnn-cpu has 2 members ddp"):
        group.member("ddp")
    with pytest.raises(LookupError, match="has 0 members dp"):
        group.member("dp")


# --- members and params


def test_a_member_of_several_groups_has_one_home():
    """Tests of the variant alone use the first group that holds it, whichever test asks."""
    everywhere = [m for g in GROUPS.values() for m in g.members]
    shared = [name for name, count in Counter(m.id for m in everywhere).items() if count > 1]

    assert shared
    for name in shared:
        assert home(name) == next(m for m in everywhere if m.id == name)
    with pytest.raises(LookupError, match="no group holds 'nobody'"):
        home("nobody")


def test_members_match_every_condition():
    """Conditions are joined by and; without any, every window is there once."""
    found = members("mnist_cnn", strategy=("ddp",), mode=("synthetic",), count=(1,))

    assert found
    assert {("ddp", "synthetic", 1)} == {(m.variant.strategy, m.variant.mode, m.variant.count) for m in found}
    assert {m.id for g in DECLARED.values() for m in g.members if m.plan == "window"} == {
        m.id for m in members()
    }
    assert all(m == home(m.id) for m in members())
    assert [] == members("nothing")
    assert all(m.plan == "audit" for m in members(plan=("audit",)))


def test_a_param_carries_what_its_variant_needs():
    """Marks come from the variant: GPUs, nodes, cores, device and backend."""
    (param,) = [
        p
        for p in variants("mnist_cnn", strategy=("ddp",), mode=("full",), count=(2,))
        if p.id == "mnist_cnn-ddp-2gpu-nccl-fp32-native"
    ]
    found = {mark.name: mark.kwargs for mark in param.marks}

    assert {
        "gpus": {"n": 2},
        "nodes": {"n": 1},
        "cores": {"n": 2},
        "device": {"kind": "cuda"},
        "backend": {"name": "nccl"},
    } == found
    assert "mnist_cnn-ddp-2gpu-nccl-fp32-native" == param.id


def test_a_pair_needs_what_its_larger_member_needs():
    """A comparison can only run where both of its sides can."""
    group = GROUPS["ddp@mnist_cnn-gpu"]
    needed = marks([group.member("single"), group.member("ddp", count=2)])

    assert {"n": 2} == next(mark.kwargs for mark in needed if mark.name == "gpus")
    assert ["nccl"] == [mark.kwargs["name"] for mark in needed if mark.name == "backend"]


# --- node ids


def test_every_perf_test_with_a_parameter_has_its_group(node_ids):
    """What pytest collects leads back to a group, for each param id that the perf tests produce."""
    with_parameters = [node_id for node_id in node_ids if "[" in node_id]

    assert len(with_parameters) > 20
    for node_id in with_parameters:
        name = group_of_node_id(node_id)
        assert name is not None, node_id
        inner = node_id[node_id.index("[") + 1 : -1]
        assert inner == name or inner.startswith(f"{name}-") or inner in {m.id for m in GROUPS[name].members}


def test_every_group_is_measured_for_some_test(node_ids):
    """No group is declared that no test of the full profile asks for."""
    assert set(DECLARED) == {group_of_node_id(node_id) for node_id in node_ids} - {None}


def test_pairs_are_grouped_by_their_group_and_members_by_their_home():
    """Pair ids begin with the group; a longer name is never taken for a shorter one."""
    for group in GROUPS.values():
        for param in pairs([Pair(group, group.members[-1], group.members[0])]):
            assert group.name == group_of_node_id(f"perf/test_x.py::test_y[{param.id}]")
        for member in group.members:
            assert home(member.id).group == group_of_node_id(f"perf/test_x.py::test_y[{member.id}]")


@pytest.mark.parametrize(
    "node_id",
    [
        "perf/test_x.py::test_y",
        "perf/test_x.py::test_y[]",
        "perf/test_x.py::test_y[other]",
        "x[loader@mnist_cnn-cpu",
        "",
    ],
)
def test_a_test_without_a_group_has_none(node_id):
    """Other tests are scopes of their own."""
    assert group_of_node_id(node_id) is None


def test_a_group_name_is_matched_whole():
    """``ddp@x-cpu2`` is not in the group ``ddp@x-cpu``."""
    assert group_of_node_id("t[ddp@mnist_cnn-cpu2]") is None
    assert "ddp@mnist_cnn-cpu" == group_of_node_id("t[ddp@mnist_cnn-cpu]")


# --- the plan's arithmetic against the real thing


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 90), st.integers(1, 7), st.integers(1, 24))
def test_batches_an_epoch_are_what_torch_delivers(samples, ranks, batch_size):
    """On every rank, DistributedSampler and DataLoader give as many batches as the plan says."""
    dataset = TensorDataset(torch.arange(samples))
    counts = [
        sum(
            1
            for _ in DataLoader(
                dataset, batch_size, sampler=DistributedSampler(dataset, num_replicas=ranks, rank=rank)
            )
        )
        for rank in range(ranks)
    ]

    assert [batches_an_epoch(samples, ranks, batch_size)] * ranks == counts
    assert batches_an_epoch(samples, 1, batch_size) == sum(
        1 for _ in DataLoader(dataset, batch_size, shuffle=True)
    )


@given(st.integers(1, 8), st.integers(0, 100))
def test_a_round_is_a_permutation(count, round_number):
    """Every member is launched once a round."""
    assert list(range(count)) == sorted(order_of_round(range(count), round_number))


@given(st.integers(1, 8), st.integers(0, 20))
def test_rounds_are_balanced(count, first):
    """Over a cycle, wherever it begins, every member stands at every place equally often."""
    cycle = 6 if count == 3 else 2 * count
    first *= cycle
    places = Counter(
        (place, member)
        for round_number in range(first, first + cycle)
        for place, member in enumerate(order_of_round(range(count), round_number))
    )

    assert {cycle // count} == set(places.values())
    assert count**2 == len(places)


def test_a_group_of_one_member_divides_by_itself():
    """The largest member's devices are what the cores are divided by."""
    group = Group("g", "q", (Member("g", Variant("mnist_cnn", "ddp", "cpu", 3, backend="gloo")),))

    assert 3 == group.most_devices
    assert groups("nothing") == []


def test_a_comparison_launches_one_variant_on_two_stacks():
    """Each variant that trains is compared in a group of its own: old, then new; no other test takes its members."""
    group = GROUPS["compare@mnist_cnn-single-1cpu-fp32-native"]
    old, new = group.members
    assert ("old", "new") == (old.side, new.side)
    assert old.variant == new.variant
    assert "mnist_cnn-single-1cpu-fp32-native@old" == old.id
    assert not [member for member in members() if member.side]


def test_a_comparison_is_found_by_its_whole_name():
    """The name of a variant may begin with another one's: with -synthetic, it is another group."""
    for name in (
        "compare@mnist_cnn-single-1cpu-fp32-native",
        "compare@mnist_cnn-single-1cpu-fp32-native-synthetic",
    ):
        assert name == group_of_node_id(f"perf/test_compare.py::test_a_step_takes_no_longer[{name}]")
        assert name in GROUPS


def test_steps_of_a_sweep_are_not_compared():
    """Two stacks are compared in ways to train; each point of a scaling curve would take a night."""
    compared = {g.name.partition("@")[2] for g in GROUPS.values() if g.question == "compare"}

    assert "mnist_cnn-ddp-2gpu-nccl-fp32-native-synthetic" in compared
    assert not [
        m.id for q in ("knobs", "strong") for g in groups(q) for m in g.members[1:] if m.id in compared
    ]


@pytest.mark.parametrize(
    ("devices", "cores", "workers"), [(2, 32, 8), (4, 32, 4), (8, 32, 2), (None, 32, 2), (1, 32, 8)]
)
def test_cores_are_divided_by_the_devices_that_there_are(devices, cores, workers):
    """A scaling curve names 8 GPUs; on a node with fewer nothing is kept for those that it lacks."""
    group = GROUPS["weak_real@mnist_cnn-gpu"]
    shares = [
        share_for(m, PROFILES["full"], cores, devices)
        for m in group.members
        if m.variant.count <= (devices or 8)
    ]

    assert {workers} == {share.workers for share in shares}
    assert not any(share.oversubscribed for share in shares)


def test_what_a_stack_is_accepted_by_is_what_is_compared():
    """Profile compare holds what quick holds; the others the rest too."""
    for group in (g for g in GROUPS.values() if g.question == "compare"):
        accepted = "quick" in GROUPS[home(group.name.partition("@")[2]).group].profiles
        assert (COMPARING if accepted else COMPARING[1:]) == group.profiles
