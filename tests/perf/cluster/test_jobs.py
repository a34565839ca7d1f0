"""Which tests go into which job."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.catalogue import GROUPS, group_of_node_id
from perf.cluster.jobs import Test, make_plan, parse_collected, plan_facts
from perf.cluster.sites import parse_site
from perf.profiles import PROFILES

QUICK, FULL = PROFILES["quick"], PROFILES["full"]


def group_tests(*groups: str) -> list[Test]:
    """Return a test of each member of some groups, as pytest would collect them."""
    return [
        Test(
            node_id=f"perf/test_x.py::test_y[{group}-{number}]",
            device=m.variant.device,
            nodes=m.variant.nodes,
            gpus=m.variant.gpus,
            cores=m.variant.ranks_per_node,
            backends=[],
        )
        for group in groups
        for number, m in enumerate(GROUPS[group].members)
    ]


def test_groups_with_equal_needs_share_a_job_and_are_never_split(site):
    """Two nodes, two GPUs and one GPU give three jobs, the largest first; each group is in one of them."""
    tests = group_tests(
        "nodes@mnist_cnn-gpu", "ddp@mnist_cnn-gpu", "dp@mnist_cnn-gpu", "loader@mnist_cnn-gpu"
    )

    plan = make_plan(tests, site(), QUICK, "cuda")

    assert [("2node-2gpu", 2, 2), ("1node-2gpu", 1, 2), ("1node-1gpu", 1, 1)] == [
        (job.name, job.nodes, job.gpus) for job in plan.jobs
    ]
    for job in plan.jobs:
        for other in plan.jobs:
            if other is not job:
                assert not {group_of_node_id(n) for n in job.node_ids} & {
                    group_of_node_id(n) for n in other.node_ids
                }
    assert sorted(test.node_id for test in tests) == sorted(n for job in plan.jobs for n in job.node_ids)


def test_a_test_of_one_gpu_goes_where_its_whole_group_can_be_measured(site):
    """A verdict must not depend on what else was selected, so the group's largest member decides."""
    small = [test for test in group_tests("ddp@mnist_cnn-gpu") if test.gpus == 1]

    (job,) = make_plan(small, site(), QUICK, "cuda").jobs

    assert 2 == job.gpus


def test_what_a_site_can_not_run_is_left_out_with_the_reason(site):
    """GPUs, nodes and the other kind of device are told apart."""
    tests = group_tests("nodes@mnist_cnn-gpu", "loader@mnist_cnn-cpu", "autotuned_dp@mnist_cnn-gpu")

    plan = make_plan(tests, site(node="cores = 8\ngpus = 1"), QUICK, "cuda")

    assert not plan.jobs
    assert {
        "needs 2 GPUs, 1 at test",
        "measures the CPU; this run measures cuda (--device cpu would measure it)",
    } == set(plan.left_out.values())


def test_two_nodes_are_left_out_where_jobs_have_one(site):
    """The CPU's variants on two nodes need an allocation of two."""
    plan = make_plan(group_tests("nodes@mnist_cnn-cpu"), site(node="cores = 4\nmost = 1"), QUICK, "cpu")

    assert ["needs 2 nodes, 1 at test"] == list(plan.left_out.values())
    assert ["1node-0gpu"] == [job.name for job in plan.jobs]


def test_a_limit_holds_all_that_the_looks_may_ask_for(site):
    """Launches of the cap, at what a launch takes, twice, and the start; never beyond the site's own."""
    tests = group_tests("loader@mnist_cnn-gpu")

    (job,) = make_plan(tests, site(), QUICK, "cuda").jobs
    (short,) = make_plan(tests, site(scheduler='time = "00:15:00"'), QUICK, "cuda").jobs

    members = len(GROUPS["loader@mnist_cnn-gpu"].members)
    # 12.0 s a fresh launch are expected, 22.1 s are the longest that was seen.
    assert pytest.approx(members * QUICK.launches * 12.0) == job.planned_seconds
    assert int(600 + 2 * members * QUICK.cap * 22.1) == job.seconds
    assert 900 == short.seconds
    assert pytest.approx(job.seconds / 3600) == job.gpu_hours_most


def test_more_than_a_limit_holds_becomes_several_jobs(site):
    """A site's longest job is filled and the next one begun, between groups."""
    tests = group_tests(
        *(name for name in GROUPS if name.endswith("-gpu") and name.startswith(("loader", "epochs")))
    )

    plan = make_plan(tests, site(), FULL, "cuda")

    assert len(plan.jobs) > 1
    assert [f"1node-1gpu-{number}" for number in range(1, len(plan.jobs) + 1)] == [
        job.name for job in plan.jobs
    ]


def test_a_job_asks_for_whole_nodes_or_for_its_gpus_share(site):
    """Without exclusive nodes the cores are those that come with the GPUs."""
    tests = group_tests("dp@mnist_cnn-gpu")
    shared = site(scheduler="exclusive = false", node="cores = 64\ncores_per_gpu = 16\ngpus = 4")

    assert [8] == [job.cores for job in make_plan(tests, site(), QUICK, "cuda").jobs]
    assert [(32, False)] == [
        (job.cores, job.exclusive) for job in make_plan(tests, shared, QUICK, "cuda").jobs
    ]


@given(st.sets(st.sampled_from(sorted(GROUPS)), min_size=1), st.sampled_from(["smoke", "quick", "full"]))
def test_every_test_is_in_one_job_or_left_out(groups, profile):
    """Nothing is lost and nothing is done twice, whatever is selected."""
    site = parse_site('[scheduler]\nkind = "slurm"\n[node]\ncores = 8\ngpus = 2\nmost = 2\n', "x.toml")
    tests = group_tests(*groups)

    plan = make_plan(tests, site, PROFILES[profile], "cuda")

    placed = [n for job in plan.jobs for n in job.node_ids]
    assert sorted(test.node_id for test in tests) == sorted([*placed, *plan.left_out])
    assert len({job.name for job in plan.jobs}) == len(plan.jobs)
    assert all(job.nodes <= 2 and job.gpus <= 2 for job in plan.jobs)
    json.dumps(plan_facts(plan))


def test_a_job_has_time_for_what_a_test_takes_beside_the_judged_launches(site):
    """A launch in phases of each member: six launches a member in place of five."""
    tests = group_tests("dp@mnist_cnn-gpu")
    (plain,) = make_plan(tests, site(), QUICK, "cuda").jobs
    asks = [*tests[1:], msgspec.structs.replace(tests[0], beside=["phases"])]
    (beside,) = make_plan(asks, site(), QUICK, "cuda").jobs

    assert plain.planned_seconds * 6 / 5 == pytest.approx(beside.planned_seconds)


def test_the_collected_list_is_read_back():
    """What the plugin writes is checked on the way in."""
    text = '[{"node_id": "a[b c]", "device": "cpu", "nodes": 1, "gpus": 0, "cores": 2, "backends": ["gloo"], '
    text = f'{text}"beside": ["phases"]}}]'

    (test,) = parse_collected(text)

    assert ("a[b c]", frozenset({"gloo"})) == (test.node_id, test.need.backends)
    assert frozenset({"phases"}) == test.need.beside
