from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.catalogue import GROUPS
from perf.machine import REPOSITORY
from perf.profiles import PROFILES
from perf.suite import costs
from perf.suite.costs import expected_seconds
from perf.suite.planning import Part, Planned, beside, extra_launches, one_by_one, parts_of, rank, told
from perf.suite.selection import Need

QUICK = PROFILES["quick"]


def part(name, gpus, seconds, launches=1):
    return Part(name, launches, ((gpus, seconds),))


@st.composite
def several(draw):
    """Return parts on up to four GPUs, each in stages that need ever fewer."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        counts = sorted(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)), reverse=True)
        stages = tuple((count, float(draw(st.integers(1, 50)))) for count in counts)
        found.append(Part(f"g{number}", 1, stages))
    return found


def used_at(planned, moment):
    """Return how many GPUs are held at a moment."""
    total = 0
    for one in planned:
        begins = one.starts
        for gpus, seconds in one.part.stages:
            total += gpus if begins <= moment < begins + seconds else 0
            begins += seconds
    return total


@given(several(), st.integers(1, 8))
def test_what_is_planned_beside_each_other_fits(parts, processes):
    """Every part is planned once, no more GPUs are held than there are, and no more processes measure."""
    planned, left_out = beside(parts, 4, processes)

    assert not left_out

    assert sorted(p.group for p in parts) == sorted(one.part.group for one in planned)
    for one in planned:
        assert one.ends - one.starts == pytest.approx(one.part.seconds)
        assert used_at(planned, one.starts) <= 4
        assert sum(other.starts <= one.starts < other.ends for other in planned) <= processes
    # No sooner than the GPUs, or the longest part, allow; no later than one after the other.
    ends = max(one.ends for one in planned)
    assert ends >= max(*(p.seconds for p in parts), sum(p.gpu_seconds for p in parts) / 4) - 1e-6
    assert ends <= sum(p.seconds for p in parts) + 1e-6


def test_large_parts_come_first_and_give_gpus_back():
    """One of two GPUs beside one of two; one that needs one starts where the first stage of a larger one ends."""
    scaling = Part("scaling", 3, ((4, 10.0), (2, 10.0), (1, 10.0)))
    planned = {
        one.part.group: one for one in beside([part("one", 1, 5.0), scaling, part("two", 2, 8.0)], 4, 3)[0]
    }

    assert (0.0, 30.0) == (planned["scaling"].starts, planned["scaling"].ends)
    assert 10.0 == planned["two"].starts
    assert 18.0 == planned["one"].starts


def test_a_budget_takes_the_first_and_leaves_out_what_does_not_fit():
    """A part that is too long is left out, and a shorter one behind it is not."""
    planned, left_out = one_by_one([part("a", 1, 30.0), part("b", 1, 100.0), part("c", 1, 20.0)], 60.0)

    assert [("a", 0.0), ("c", 30.0)] == [(one.part.group, one.starts) for one in planned]
    assert ["b"] == [one.group for one in left_out]


def test_beside_each_other_each_process_takes_its_first_and_then_what_fits():
    """The most telling first: of two processes each has one, and a third part fits only while there is time."""
    parts = [
        part("samples@mnist_cnn-gpu", 1, 9.0),
        part("dp@mnist_cnn-gpu", 2, 50.0),
        part("talk4@mnist_cnn-gpu", 2, 70.0),
    ]
    planned, left_out = beside(parts, 4, 2, 55.0)

    assert ["dp@mnist_cnn-gpu", "talk4@mnist_cnn-gpu"] == [one.part.group for one in planned]
    assert ["samples@mnist_cnn-gpu"] == [one.group for one in left_out]
    assert not beside(parts, 4, 2, 60.0)[1]


def test_what_nobody_knows_is_planned_without_times():
    """On a CPU launches are counted, and nothing is left out for time."""
    planned, left_out = one_by_one([part("a", 0, None), part("b", 0, None)], 1.0)

    assert ([0.0, None], [None, None]) == ([one.starts for one in planned], [one.ends for one in planned])
    assert not left_out
    lines = told(planned, {}, start=20.0, how="one after the other")
    assert "told as it goes" in " ".join(lines)
    assert ["–", "a", "0", "1", "–"] == lines[1].split()


def test_launches_for_profiles_are_planned_for_those_that_have_them():
    """Three members with five launches each, one of them with two more of 10 s."""
    members = GROUPS["dp@mnist_cnn-gpu"].members
    extras = {members[0]: 2}
    (part,) = parts_of(members, PROFILES["full"], lambda member: 10.0, lambda member: extras.get(member, 0))

    assert (17, ((2, 170.0),)) == (part.launches, part.stages)


def test_sides_that_are_launched_in_turn_hold_their_gpus_for_all_of_it():
    """A judged group has one stage of its largest member's GPUs, others one a launch, the largest first."""
    judged, scaling = (
        parts_of(
            [m for m in GROUPS[name].members if m.variant.gpus <= 4],
            PROFILES["full"],
            lambda member: 10.0,
        )[0]
        for name in ("dp@mnist_cnn-gpu", "weak@mnist_cnn-gpu")
    )

    assert (15, ((2, 150.0),), 300.0) == (judged.launches, judged.stages, judged.gpu_seconds)
    assert (3, ((4, 10.0), (2, 10.0), (1, 10.0)), 70.0) == (
        scaling.launches,
        scaling.stages,
        scaling.gpu_seconds,
    )


def test_a_slow_network_costs_what_its_loader_its_precision_and_its_batch_make_of_it():
    """`unet3d` on the loader or without one, in half precision, at larger batches, by several ranks."""

    def seconds(group: str, **wanted) -> float:
        members = (m for m in GROUPS[group].members if m.plan == "window")
        found = [m for m in members if all(getattr(m.variant, k) == v for k, v in wanted.items())]
        return expected_seconds(found[0], "fork")

    assert 22.2 == seconds("loader@unet3d-gpu", mode="full")
    assert 13.1 == seconds("loader@unet3d-gpu", mode="synthetic")
    assert 6.5 == seconds("ladder@unet3d-gpu", precision="bf16", optimizations=())
    assert 13.1 + 21.3 == pytest.approx(seconds("ladder@unet3d-gpu", optimizations=("autotune",)))
    assert [13.3, 20.4, 34.8] == [seconds("weak_real@unet3d-gpu", count=count) for count in (1, 2, 4)]
    assert [13.0, 13.0] == [seconds("strong_real@unet3d-gpu", count=count) for count in (2, 4)]
    assert [6.5, 8.5, 10.5, 10.5] == [seconds("weak@unet3d-gpu", count=count) for count in (1, 2, 4, 8)]
    assert [7.9, 24.1, 46.1] == [seconds("batches@unet3d-gpu", batch=batch) for batch in (16, 64, 128)]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [("mnist_cnn", [5.7, 6.5]), ("resnet50", [15.3, 48.4])],
)
def test_autotuned_dataparallel_costs_a_search_in_every_step(workload, expected):
    """Its threads are new in each forward pass, and what was found belongs to a thread."""
    found = [expected_seconds(m, "fork") for m in GROUPS[f"autotuned_dp@{workload}-gpu"].members]

    assert pytest.approx(expected) == found


def test_dataparallel_costs_more_the_more_gpus_it_has():
    """One process queues the work of all, while each rank of DDP queues its own."""

    def seconds(strategy: str) -> list[float]:
        groups = (GROUPS[f"{question}@resnet152-gpu"] for question in ("dp", "dp4", "dp8"))
        return [expected_seconds(group.member(strategy), "fork") for group in groups]

    assert [23.0, 46.0, 46.0] == seconds("dp")
    assert [8.9, 11.2, 11.2] == seconds("ddp")


def test_what_a_stack_is_accepted_by_is_most_telling():
    """Judged groups of profile quick come before other judged ones, and these before what is only told."""
    assert [0, 1, 2] == [
        rank(g) for g in ("dp@mnist_cnn-gpu", "talk4@mnist_cnn-gpu", "samples@mnist_cnn-gpu")
    ]


def test_a_launch_costs_more_fresh_compiled_and_on_several_ranks(monkeypatch):
    """What nobody measured takes as long as the longest that was; on a CPU nobody knows."""
    monkeypatch.delitem(costs.BY_FORK, ("resnet50_224", "window", "single"))
    group = {m.variant.strategy: m for m in GROUPS["dp@mnist_cnn-gpu"].members}
    compiled = next(m for m in GROUPS["ladder@mnist_cnn-gpu"].members if "compile" in m.variant.optimizations)
    unknown = GROUPS["loader@resnet50_224-gpu"].members[0]

    assert 3.7 == expected_seconds(group["single"], "fork")
    assert 17.8 == pytest.approx(expected_seconds(group["ddp"], "fresh"))
    assert 17.3 == pytest.approx(expected_seconds(compiled, "fork"))
    assert 124.0 == expected_seconds(unknown, "fork")
    assert 2.0 == expected_seconds(GROUPS["solution@unet3d_tiny-gpu"].members[0], "fork")
    assert expected_seconds(GROUPS["loader@mnist_cnn-cpu"].members[0], "fork") is None


def test_the_plan_is_told_in_rows():
    """Each group with start, GPUs, launches and time; then the whole, and what is left out."""
    lines = told(
        [Planned(part("b", 2, 60.0, 15), 30.0, 90.0), Planned(part("a", 1, 30.0, 5), 0.0, 30.0)],
        {"needs 8 GPUs, 4 here": 3},
        start=20.0,
        how="launched by fork",
    )

    assert ["20", "s", "a", "1", "5", "30", "s"] == lines[1].split()
    assert ["50", "s", "b", "2", "15", "1", "min", "00", "s"] == lines[2].split()
    assert "20 launches in 2 groups, launched by fork: about 1 min 50 s and 0.0 GPU hours" in lines[4]
    assert "left out: 3 tests: needs 8 GPUs, 4 here" == lines[-1]


def test_a_plan_of_nothing_says_so():
    """With the reasons, and no table of none."""
    lines = told([], {"needs 1 GPU, 0 here": 1}, start=20.0, how="launched by fork")

    assert ["Nothing would be measured here.", "left out: 1 test: needs 1 GPU, 0 here"] == lines


def test_a_plan_is_told_and_nothing_is_measured(suite):
    """--plan with -n ends with status 0, without a launch and without a run's folder."""
    done = suite("perf", "--plan", "--profile", "full", "-n", "6", "--device", "cuda", gpus=4, cores=64)

    assert 0 == done.status, done.output
    assert "6 at a time on 4 GPUs" in done.output
    assert "needs 8 GPUs, 4 here" in done.output
    assert not done.results.exists() or not list(done.results.iterdir())


@pytest.mark.parametrize(("test", "launches"), [("speed_up_and", 15), ("forward_share", 18)])
def test_a_plan_holds_what_a_test_takes_beside_the_judged_launches(suite, test, launches):
    """Whoever asks for the forward pass's share has a launch in phases of each of the three ways."""
    words = ("--profile", "full", "--device", "cuda", "--launcher", "fork", "-k", f"{test} and mnist_cnn")
    done = suite("perf", "--plan", *words, gpus=2, cores=32)

    assert f"dp@mnist_cnn-gpu     2        {launches}  " in done.output


def test_a_plan_without_a_stack_ends_with_the_reason():
    """Nothing was planned: status 11, and no traceback."""
    words = [
        sys.executable,
        "-m",
        "pytest",
        "perf",
        "--plan",
        "--stack=/nowhere/python",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert 11 == done.returncode, done.stdout
    assert "nothing can be planned: " in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_stored_launches_are_not_planned(suite, tmp_path):
    """With --records none are made."""
    (tmp_path / "records.jsonl").touch()
    done = suite("perf", "--plan", f"--records={tmp_path}")

    assert 4 == done.status
    assert "with --records none are made" in done.output


def test_profile_full_on_four_gpus_is_planned_at_half_an_hour(suite):
    """With groups beside each other, by what launches took on H200s; docs/launching.md says so."""
    done = suite(
        *("perf", "--plan", "--profile", "full", "--device", "cuda", "-n", "6", "--share-node"),
        gpus=4,
        cores=64,
    )

    (minutes,) = re.findall(r"6 at a time on 4 GPUs: about (\d+) min", done.output)
    assert int(minutes) < 30


def test_a_plan_keeps_to_a_budget(suite):
    """What a stack is accepted by stays in, what there is no time for is named."""
    words = (
        "perf",
        "--plan",
        "--profile",
        "full",
        "--budget",
        "10min",
        "--launcher",
        "fork",
        "--device",
        "cuda",
    )
    done = suite(*words, gpus=1, cores=16)

    assert 0 == done.status, done.output
    assert "loader@mnist_cnn-gpu" in done.output
    assert "for which the budget of 10 min 00 s has no room: " in done.output


def test_a_budget_counts_what_tests_launch_beside_what_is_judged(suite):
    """Of a group that is not asked the reason says how many launches: with those in phases, where it has such."""

    def launches(*words):
        done = suite("perf", "--budget", "1s", "-k", "mnist_cnn and cpu", "-rs", *words, cores=2, takes=0.2)
        told = re.findall(r"not asked: (\d+) launches", " ".join(done.output.split()))
        return list(map(int, told))

    plain, more = launches(), launches("--phases")
    assert len(plain) == len(more) > 0
    assert all(few <= many for few, many in zip(plain, more, strict=True))
    assert sum(plain) < sum(more)


def test_members_are_launched_beside_what_is_judged_for_all_of_their_tests():
    """Once for what one test asks or several do, also for profiles of the whole run; a graph has no phases."""
    group = GROUPS["dp@mnist_cnn-gpu"]
    single, dp, *_ = group.members
    graph = next(
        member
        for found in GROUPS.values()
        for member in found.members
        if "cuda_graph" in member.variant.optimizations
    )
    plain, asks = Need("cuda"), Need("cuda", beside=frozenset({"phases"}))
    count = extra_launches([(plain, [single, dp]), (asks, [dp, graph]), (asks, [dp])], [])
    assert [0, 1, 0] == [count(member) for member in (single, dp, graph)]

    count = extra_launches([(plain, [single]), (asks, [dp])], ["phases", "line-profile"])
    assert [2, 2, 0] == [count(member) for member in (single, dp, graph)]


def test_a_budget_leaves_out_what_tells_least(suite):
    """The first group is measured in any case; of the others each test says what it would have taken."""
    done = suite("perf", "--budget", "1s", "-k", "mnist_cnn and cpu", "-rs", cores=2, takes=0.2)

    assert "of the budget of 1 s are left" in done.output
    assert {"loader@mnist_cnn-cpu"} <= {record.group for record in done.run.records()}
