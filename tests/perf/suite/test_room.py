"""Groups beside each other on one node: the suite under xdist, with real processes, over a stack of four GPUs."""

from __future__ import annotations

import itertools
import os
from types import SimpleNamespace

import pytest

from perf.catalogue import GROUPS
from perf.launch.leases import LeaseError
from perf.launch.stack import Stack
from perf.suite.room import Node, Rooms, is_functional

FOUR = [{"index": i, "name": "fake", "uuid": f"GPU-{i}"} for i in range(4)]
CORES = sorted(os.sched_getaffinity(0))


def overlapping(launches):
    """Return the pairs of launches that ran at the same time."""
    return [
        (a, b)
        for a, b in itertools.combinations(launches, 2)
        if a.started_at < b.started_at + b.launch_seconds and b.started_at < a.started_at + a.launch_seconds
    ]


def cards(launch):
    """Return the cards of a launch."""
    return {uuid for rank in launch.gpu_uuids for uuid in rank}


def rooms(folder, *, gpus=FOUR, facts=None, environ=None, cores=8, **rest):
    """Return rooms of a node with some GPUs."""
    stack = Stack("s", "python", {"gpus": gpus, **(facts or {})})
    node = Node(stack, cores, CORES, environ or {})
    settings = {"share": False, "beside": False, "profile": "quick", "steps": False, "say": print, **rest}
    return Rooms("r", node, folder=folder, **settings)


def some(name):
    """Return the members of a group."""
    return GROUPS[name].members


@pytest.mark.parametrize("at_a_time", [2, 4])
def test_workers_that_share_the_node_never_share_a_gpu(suite, at_a_time):
    """No two launches whose time overlaps had one card, several did overlap, and every record says that it shared."""
    done = suite(
        *("perf/test_ddp.py", "perf/test_loader.py", "-k", "mnist_cnn and gpu", "-n", str(at_a_time)),
        gpus=4,
        cores=8,
        takes=0.1,
    )

    launches = [record for record in done.run.records() if record.device == "cuda"]
    assert launches, done.output
    beside = overlapping(launches)
    assert beside
    for a, b in beside:
        assert not cards(a) & cards(b), f"{a.launch} and {b.launch} had {cards(a) & cards(b)} together"
    assert all(launch.shared_node for launch in launches)
    # A card has a quarter of the eight cores, and no launch uses more than those of the cards that it may have.
    assert all(launch.cores <= 2 * 2 for launch in launches)


def test_without_the_option_times_are_taken_alone_and_facts_beside_each_other(suite):
    """Gated launches overlap with none; those that count samples may, are marked, and keep to their own cards."""
    done = suite("perf", "-n", "4", "-k", "mnist_cnn and gpu", share=False, gpus=4, cores=8, takes=0.05)

    launches = [record for record in done.run.records() if record.device == "cuda"]
    assert launches, done.output
    assert {"audit"} == {launch.plan for launch in launches if launch.shared_node}
    for a, b in overlapping(launches):
        assert a.shared_node
        assert b.shared_node
        assert not cards(a) & cards(b)


def test_leases_stay_inside_the_callers_cuda_visible_devices(suite):
    """A caller who was given cards 1 and 3 never touches 0 and 2."""
    done = suite(
        "perf/test_loader.py",
        "-n",
        "2",
        "-k",
        "mnist_cnn",
        gpus=4,
        cores=8,
        variables={"CUDA_VISIBLE_DEVICES": "1,3"},
    )

    used = {uuid for record in done.run.records() if record.device == "cuda" for uuid in cards(record)}
    assert used, done.output
    assert used <= {"GPU-1", "GPU-3"}


def test_a_launch_on_a_gpu_that_it_has_no_lease_of_is_an_error(suite):
    """A stack that sets CUDA_VISIBLE_DEVICES itself would measure on somebody's card, and nobody would see it."""
    done = suite(
        "perf/test_loader.py", "-n", "2", "-k", "mnist_cnn and gpu", gpus=4, cores=8, takes=0.1, deaf=True
    )

    assert 11 == done.status, done.output
    assert "something in the stack sets CUDA_VISIBLE_DEVICES again" in done.output


@pytest.mark.parametrize(
    ("group", "profile", "expected"),
    [
        ("samples@mnist_cnn-gpu", "quick", True),
        ("samples_ddp@mnist_cnn-gpu", "full", True),
        ("loader@mnist_cnn-gpu", "quick", False),
        ("workers@mnist_cnn-gpu", "full", False),
        ("loader@mnist_cnn-gpu", "smoke", False),
        ("ddp@mnist_cnn-gpu", "smoke", True),
    ],
)
def test_a_group_is_functional_where_no_time_of_it_is_judged(group, profile, expected):
    """Counting samples; in smoke all but the pair that it judges. A sweep has floors, so its times count."""
    assert expected == is_functional(GROUPS[group], profile)


def test_a_group_sees_its_own_gpus_and_has_the_cores_that_go_with_them(tmp_path):
    """The caller's own words for the cards are kept; the stack's facts are narrowed alike."""
    mine = rooms(tmp_path / "l", environ={"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, share=True)
    with mine.room(some("samples@mnist_cnn-gpu")) as cores:
        assert max(1, len(CORES) // 4) == cores
        assert "4" == mine.environ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"})["CUDA_VISIBLE_DEVICES"]
        assert FOUR[:1] == mine.narrow(Stack("s", "python", {"gpus": FOUR})).facts["gpus"]
        with mine.binding():
            assert cores == len(os.sched_getaffinity(0))
        assert mine.shared
        assert mine.lock is None
    assert {"A": "b"} == mine.environ({"A": "b"})


def test_a_gated_group_has_every_core_and_the_node_to_itself(tmp_path):
    """A lease of its cards, and no binding: its times are those of a launch alone, whoever else runs the suite."""
    mine = rooms(tmp_path / "l", beside=True)
    with mine.room(some("loader@mnist_cnn-gpu")) as cores, mine.launching():
        assert 8 == cores
        assert not mine.shared
        assert mine.lock.held
        with mine.binding():
            assert CORES == sorted(os.sched_getaffinity(0))


def test_cards_that_a_group_had_come_first_when_it_wants_more_launches(tmp_path):
    """Launches that an undecided test adds are on the card of the first ones, where that is free."""
    mine, other = rooms(tmp_path / "l", share=True), rooms(tmp_path / "l", share=True)
    with other.room(some("loader@mnist_cnn-gpu")), mine.room(some("loader@mnist_cnn-gpu")):
        first = mine.environ({})["CUDA_VISIBLE_DEVICES"]
    with mine.room(some("loader@mnist_cnn-gpu")):
        assert first == mine.environ({})["CUDA_VISIBLE_DEVICES"] == "1"


class Waits(Exception):
    """Raised instead of waiting."""


def refuse(text):
    raise Waits(text)


@pytest.mark.parametrize("then", ["loader@mnist_cnn-cpu", "default@mnist_cnn-gpu", None])
def test_a_group_keeps_its_cards_until_another_one_is_measured(tmp_path, then):
    """Its judged tests ask for more launches, and would queue behind all others; a run that ends gives them back."""
    one = {"gpus": FOUR[:1], "share": True}
    mine, other = rooms(tmp_path / "l", **one), rooms(tmp_path / "l", **one, say=refuse)
    with mine.room(some("loader@mnist_cnn-gpu")):
        pass
    with pytest.raises(Waits, match="waiting for 1 of 1 GPUs"), other.room(some("loader@mnist_cnn-gpu")):
        pass
    if then:
        with mine.room(some(then)):
            pass
    if then is None or "gpu" in then:
        mine.close()
    with other.room(some("loader@mnist_cnn-gpu")):
        assert "0" == other.environ({})["CUDA_VISIBLE_DEVICES"]


def test_a_group_that_had_fewer_cards_than_it_wants_now_asks_again(tmp_path):
    """And gives its own back first: two such groups would wait for each other."""
    mine = rooms(tmp_path / "l", share=True)
    dp = {member.variant.strategy: member for member in some("dp@mnist_cnn-gpu")}
    with mine.room([dp["single"]]):
        assert "0" == mine.environ({})["CUDA_VISIBLE_DEVICES"]
    with mine.room([dp["ddp"]]):
        assert "0,1" == mine.environ({})["CUDA_VISIBLE_DEVICES"]
    with mine.room([dp["single"]]):
        assert "0,1" == mine.environ({})["CUDA_VISIBLE_DEVICES"]


def test_launches_that_follow_have_cores_as_the_first_ones_had(tmp_path):
    """A group that gave cards back is fed as before: its cores are counted for its largest member."""
    mine = rooms(tmp_path / "l", share=True)
    talk, alone = some("weak@mnist_cnn-gpu"), some("weak@mnist_cnn-gpu")[:1]
    with mine.room([member for member in talk if member.variant.gpus <= 4]) as first:
        mine.keep(1)
    with mine.room(alone) as then:
        assert first == then


def test_what_takes_no_gpu_is_done_before_any_is_taken(tmp_path):
    """With a place in the queue, also where the group needs no GPU; not again while the group keeps its GPUs."""
    mine = rooms(tmp_path / "l", share=True)
    seen = []
    with mine.room(
        some("loader@mnist_cnn-gpu"), lambda: seen.append(len(list((tmp_path / "l").glob("ticket-*"))))
    ):
        pass
    with mine.room(some("loader@mnist_cnn-gpu"), lambda: seen.append(-1)):
        pass
    with mine.room(some("loader@mnist_cnn-cpu"), lambda: seen.append(0)):
        pass

    assert [1, 0] == seen


def test_cards_that_no_launch_needs_any_more_are_given_back(tmp_path):
    """A neighbour has them at once; the group keeps its first, and what is left at its end is given back once."""
    mine, other = (rooms(tmp_path / "l", share=True, say=refuse) for _ in range(2))
    with mine.room(some("talk4@mnist_cnn-gpu")):
        assert "0,1,2,3" == mine.environ({})["CUDA_VISIBLE_DEVICES"]
        mine.keep(8)
        mine.keep(1)
        assert "0" == mine.environ({})["CUDA_VISIBLE_DEVICES"]
        assert ["GPU-0"] == [
            gpu["uuid"] for gpu in mine.narrow(Stack("s", "p", {"gpus": FOUR})).facts["gpus"]
        ]
        with other.room(some("dp@mnist_cnn-gpu")):
            assert "1,2" == other.environ({})["CUDA_VISIBLE_DEVICES"]
    mine.close()
    other.close()
    with other.room(some("talk4@mnist_cnn-gpu")):
        assert "0,1,2,3" == other.environ({})["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {"HIP_VISIBLE_DEVICES": "0"}),
        ({"ROCR_VISIBLE_DEVICES": "6,7"}, {"ROCR_VISIBLE_DEVICES": "6"}),
        ({"ROCR_VISIBLE_DEVICES": "6,7", "CUDA_VISIBLE_DEVICES": "1,0"}, {"CUDA_VISIBLE_DEVICES": "1"}),
    ],
)
def test_amds_gpus_are_narrowed_by_the_variable_that_counts_last(tmp_path, environ, expected):
    """ROCR's numbers the cards for HIP's and CUDA's: narrowing both would choose twice."""
    mine = rooms(tmp_path / "l", gpus=FOUR[:2], facts={"hip": "6"}, environ=environ, share=True)
    with mine.room(some("loader@mnist_cnn-gpu")):
        assert {**environ, **expected} == mine.environ(environ)


def test_in_a_job_nothing_is_leased(tmp_path):
    """The scheduler gives a step its GPUs; on the CPU there are none."""
    job, here = rooms(tmp_path / "l", steps=True), rooms(tmp_path / "l")
    with job.room(some("loader@mnist_cnn-gpu")), here.room(some("loader@mnist_cnn-cpu")):
        assert {} == job.environ({}) == here.environ({})
    assert not (tmp_path / "l").exists()


def test_the_lease_is_held_against_what_was_used(tmp_path):
    """Upper case and the vendor's prefix are no other card; a card without a UUID can't be told."""
    mine = rooms(tmp_path / "l", share=True)
    record = SimpleNamespace(launch="l", variant="v", gpu_uuids=[["GPU-1"]])
    with (
        mine.room(some("loader@mnist_cnn-gpu")),
        pytest.raises(LeaseError, match="ran on GPU 1, and its lease is of 0"),
    ):
        mine.settle(record)
