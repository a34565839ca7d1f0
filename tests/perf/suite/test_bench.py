from __future__ import annotations

import contextlib

import pytest
from launch_records import PAIR_GROUP, record_of

from perf import contract, records
from perf.catalogue import GROUPS
from perf.profiles import PROFILES
from perf.suite.bench import Bench
from perf.suite.kept import NotStored, Stored
from perf.suite.plan import Context
from perf.suite.source import Measurement, pick

SINGLE, DDP1, DDP2 = PAIR_GROUP.members


def test_every_launch_has_room_on_the_node(tmp_path):
    """The group's rounds, launches added for a test and those that say why: none runs without its group's lease."""
    inside, launched = [], []

    @contextlib.contextmanager
    def room(members):
        inside.append({member.id for member in members})
        yield 2
        inside.pop()

    def launch(spec):
        assert inside, f"{spec.variant} has no room"
        assert spec.variant in inside[-1]
        launched.append(spec)
        member = next(m for m in PAIR_GROUP.members if m.variant.id == spec.variant)
        return record_of(member, launch=spec.launch, round=spec.round, escalation=spec.escalation)

    context = Context("run", PROFILES["quick"], 2, "/cache", None)
    run = records.Run.create(tmp_path, "run")
    source = Bench(context, run, launch, lambda member: True, lambda record: "fine", room=room)
    source.measure(SINGLE)
    assert source.more("test_a", [DDP1, SINGLE], 6)
    source.watched([DDP1, SINGLE], "phases", 1)
    source.profiled(DDP2, "line-profile")

    assert 15 + 2 + 2 + 1 == len(launched)


def test_a_group_of_one_launch_each_gives_gpus_back_as_it_goes(tmp_path):
    """The variant on most GPUs is launched first, and no more GPUs are kept than the next one needs."""
    seen, launched = [], []

    def launch(spec):
        launched.append(spec)
        return record_of(next(m for m in group.members if m.variant.id == spec.variant), launch=spec.launch)

    group = GROUPS["weak@mnist_cnn-gpu"]
    source = Bench(
        Context("run", PROFILES["full"], 2, "/cache", None),
        records.Run.create(tmp_path, "run"),
        launch,
        lambda member: member.variant.gpus <= 4,
        lambda record: "fine",
        keep=seen.append,
    )
    source.measure(group.members[0])

    assert [4, 2, 1] == seen == [spec.gpus for spec in launched]


def test_a_profile_that_there_is_no_time_for_is_said_so(tmp_path):
    """What a budget leaves no room for is an error with a sentence, not one of the bench's own."""
    context = Context("run", PROFILES["quick"], 2, "/cache", None)
    source = Bench(
        context,
        records.Run.create(tmp_path, "run"),
        lambda spec: record_of(SINGLE),
        lambda member: True,
        lambda record: "fine",
        affords=lambda members, launches: False,
    )

    with pytest.raises(RuntimeError, match="no time is left for a launch of .* for phases"):
        source.profiled(SINGLE, "phases")


def test_a_group_is_measured_once_and_shared(bench, launched):
    """The first test that needs a member measures the whole group; the next ones measure nothing."""
    source = bench()
    first = source.measure(SINGLE)
    count = len(launched)

    assert 5 == len(first.launches)
    assert 15 == count
    assert first.launches == source.measure(SINGLE).launches
    assert 5 == len(source.measure(DDP2).launches)
    assert count == len(launched)


def test_rounds_are_interleaved(bench, launched):
    """Every round launches each member once, in a changing order, with one seed."""
    bench().measure(SINGLE)
    rounds = [launched[i : i + 3] for i in range(0, 15, 3)]

    assert all(3 == len({s.variant for s in r}) for r in rounds)
    assert all(1 == len({s.seed for s in r}) for r in rounds)
    assert 1 < len({tuple(s.variant for s in r) for r in rounds})


def test_what_cannot_run_here_is_left_out(bench, launched):
    """A member that this machine can't run takes no launch; the others are measured."""
    bench(runnable=lambda member: member is not DDP2).measure(SINGLE)

    assert {SINGLE.variant.id, DDP1.variant.id} == {s.variant for s in launched}


def test_a_member_that_fails_is_not_launched_again(bench, launched):
    """One failure ends a member's launches; its tests get that failure, the other members are measured."""
    source = bench(fail=(DDP1.variant.id,))

    assert 5 == len(source.measure(SINGLE).launches)
    assert 1 == sum(s.variant == DDP1.variant.id for s in launched)
    with pytest.raises(OSError, match="no such device"):
        source.measure(DDP1)


def test_more_launches_belong_to_the_test_that_asked(bench, launched):
    """An escalation adds launches to its own two sides, and no other test sees them."""
    source = bench()
    source.measure(SINGLE)
    assert source.more("test_a", [DDP1, SINGLE], 7)

    assert [7, 7] == [len(side.launches) for side in source.sides("test_a", [DDP1, SINGLE])]
    assert [5, 5] == [len(side.launches) for side in source.sides("test_b", [DDP1, SINGLE])]
    assert {DDP1.variant.id, SINGLE.variant.id} == {s.variant for s in launched[15:]}
    assert [5, 5, 6, 6] == [s.round for s in launched[15:]]


def test_an_escalation_that_fails_is_its_own_tests_failure(bench):
    """The test that asked ends with the failure; another one of the same member is judged all the same."""
    source = bench(fail_when=lambda spec: spec.escalation == "test_a")
    source.measure(SINGLE)
    with pytest.raises(OSError, match="no such device"):
        source.more("test_a", [DDP1, SINGLE], 7)

    assert source.more("test_b", [DDP1, SINGLE], 7)
    assert 5 == len(source.measure(DDP1).launches)


def test_stored_launches_are_picked_like_measured_ones():
    """Stored launches serve the group that they were measured in, and escalations their own test."""
    stored = Stored([record_of(SINGLE), record_of(SINGLE, escalation="test_a"), record_of(DDP1)], "old")

    assert [2, 1] == [len(side.launches) for side in stored.sides("test_a", [SINGLE, DDP1])]
    assert 1 == len(stored.measure(SINGLE).launches)
    assert stored.lacks(SINGLE) is None
    assert not stored.more("test_a", [SINGLE, DDP1], 7)


def test_a_launch_that_is_not_stored_is_named():
    """What is missing is said with variant, group and run."""
    stored = Stored([record_of(SINGLE)], "results/old")

    with pytest.raises(
        NotStored, match=r"results/old holds no launch of mnist_cnn-ddp-2cpu.* in the group ddp@"
    ):
        stored.measure(DDP2)


def test_profiled_launches_are_not_judged_again():
    """A launch with a line profile or with phases does not count as a launch of its member."""
    stored = Stored([record_of(SINGLE, line_profiles=["p"]), record_of(SINGLE, phase_seconds=[{}])], "old")

    assert stored.lacks(SINGLE)


def test_pick_keeps_the_groups_rounds_first():
    """A look takes the first launches: the group's own come before those that were added."""
    extra, own = record_of(SINGLE, escalation="test_a", launch="9"), record_of(SINGLE, launch="1")

    assert ["1", "9"] == [r.launch for r in pick([extra, own], "test_a")]


def test_a_metric_has_one_value_a_launch():
    """Throughput of what trains, a rate by its name of what measures the machine; a launch without one has none."""
    rates = [{"python_loop": contract.Rate(value, "1/s")} for value in (3.0, None, 2.0)]
    measured = Measurement(SINGLE, [record_of(SINGLE, 0.5, rates=found) for found in rates])

    assert [128.0] * 3 == measured.values("throughput")
    assert [3.0, 2.0] == measured.values("python_loop")
    assert [] == measured.values("matmul_fp32")


@pytest.mark.parametrize(
    ("group", "drains", "expected"),
    [
        # Hosts hold both up: the quicker rank's device waits for the other's host.
        ("ddp@mnist_cnn-gpu", [[0.14, 0.0002]], 0.02),
        ("ddp@mnist_cnn-gpu", [[0.03, 0.02], [0.01, 0.04], [0.05, 0.06]], 2.0),
        ("ddp@mnist_cnn-gpu", [[0.03, None]], 3.0),
        ("ddp@mnist_cnn-gpu", [[None, None]], None),
        ("ddp@mnist_cnn-gpu", [[]], None),
        ("ddp@mnist_cnn-cpu", [[0.03, 0.03]], None),
    ],
)
def test_the_rank_that_is_least_ahead_tells_what_holds_a_run_up(group, drains, expected):
    """In steps of 10 ms, the median of the launches; on a CPU nobody runs ahead."""
    member = GROUPS[group].members[-1]
    measured = Measurement(member, [record_of(member, 0.01, drain_seconds=seconds) for seconds in drains])

    assert expected == (measured.drain_steps and pytest.approx(measured.drain_steps))


@pytest.fixture
def unfit_bench(tmp_path):
    """A bench whose launches are unfit where the function says so, given how many there have been before."""

    def make(unfit):
        count = iter(range(1000))

        def launch(spec: contract.LaunchSpec) -> contract.LaunchRecord:
            reasons = [f"GPU 0 was hot in {spec.launch}"] if unfit(spec, next(count)) else []
            member = next(m for m in PAIR_GROUP.members if m.variant.id == spec.variant)
            return record_of(
                member,
                launch=spec.launch,
                round=spec.round,
                escalation=spec.escalation,
                valid=not reasons,
                reasons=reasons,
                unfit=reasons,
            )

        context = Context("run", PROFILES["quick"], 2, "/cache", None)
        run = records.Run.create(tmp_path, "run")
        return Bench(context, run, launch, lambda member: True, lambda record: "fine"), run

    return make


def test_a_launch_on_an_unfit_machine_is_taken_again(unfit_bench):
    """The second one is judged and names the first, which stays in the records and is told; the round is the same."""
    source, run = unfit_bench(lambda spec, number: number == 3)
    measured = source.measure(SINGLE)
    members = [source.measure(member) for member in PAIR_GROUP.members]
    (side,) = [m for m in members if m.replaced]
    stored = {record.launch: record for record in run.records()}

    assert [5, 5, 5] == [len(m.launches) for m in members]
    assert all(launch.valid for launch in measured.launches)
    assert 16 == len(stored)
    (replacement,) = [record for record in stored.values() if record.replaces]
    assert (side.replaced[0].launch, side.replaced[0].round) == (replacement.replaces, replacement.round)
    assert not stored[replacement.replaces].valid
    events = (run.folder / records.EVENTS).read_text()
    assert f"in place of {replacement.replaces}: GPU 0 was hot" in events


def test_a_side_is_replaced_twice_at_most(unfit_bench):
    """A machine that is unfit each time leaves invalid launches to be judged so: two a side are taken again."""
    source, run = unfit_bench(lambda spec, number: spec.variant == DDP1.variant.id)
    measured = source.measure(DDP1)

    assert (5, 2) == (len(measured.launches), len(measured.replaced))
    assert not any(launch.valid for launch in measured.launches)
    assert 5 + 5 + 5 + 2 == len(run.records())
    # The limit is a side's: launches that a test adds find it used up.
    source.more("test_a", [DDP1, SINGLE], 6)
    assert 2 == len(source.sides("test_a", [DDP1, SINGLE])[0].replaced)


def test_a_launch_that_is_invalid_for_its_own_work_is_not_taken_again(bench, launched):
    """Only facts about the machine replace a launch."""
    source = bench()
    source._launch = lambda spec: record_of(SINGLE, launch=spec.launch, valid=False, reasons=["retried"])
    source.measure(SINGLE)

    assert () == source.measure(SINGLE).replaced


def test_stored_launches_that_were_replaced_are_told_and_not_judged(unfit_bench):
    """Judged again, a run gives the sides that it gave when it was measured; runs have names of their own."""
    source, run = unfit_bench(lambda spec, number: number == 0)
    source.measure(SINGLE)
    again = Stored(run.records(), "old")
    sides = source.sides("", PAIR_GROUP.members)

    assert [[r.launch for r in s.launches] for s in sides] == [
        [r.launch for r in s.launches] for s in again.sides("", PAIR_GROUP.members)
    ]
    assert [s.replaced for s in sides] == [s.replaced for s in again.sides("", PAIR_GROUP.members)]
    other = Stored(
        [record_of(SINGLE, run="b", launch="1"), record_of(SINGLE, run="a", launch="2", replaces="1")], "o"
    )
    assert 2 == len(other.measure(SINGLE).launches)


def test_a_failed_judgement_is_explained_by_launches_of_its_own(bench, launched, tmp_path):
    """Phases of both sides and a line profile of the first, once a run; the judged launches stay what they were."""
    source = bench()
    source.measure(SINGLE)
    found = source.explain([DDP1, SINGLE])

    assert 3 == len(found) == len(launched) - 15
    assert [DDP1.variant.id, SINGLE.variant.id] == [s.variant for s in launched if s.phases]
    assert [DDP1.variant.id] == [s.variant for s in launched if s.line_profile]
    assert 5 == len(source.measure(DDP1).launches)
    assert found == source.explain([DDP1, SINGLE])
    assert 18 == len(launched)


def test_an_explanation_that_can_t_be_had_is_no_failed_launch(bench, tmp_path):
    """A stack without line_profiler gets its phases, and the run tells why there is no profile."""
    source = bench(fail_when=lambda spec: spec.line_profile)
    source.measure(SINGLE)

    assert 1 == len(source.explain([SINGLE]))
    assert 1 == len(source.explain([SINGLE]))
    events = records.read_lines(tmp_path / "run" / records.EVENTS, records.Event)
    assert "failed" not in {event.kind for event in events}
    assert 1 == sum(event.text == "no line-profile: no such device" for event in events)


def test_stored_launches_explain_what_they_were_taken_for():
    """A run that is judged again has the phases and profiles that it was explained by."""
    phases, profile = record_of(SINGLE, phase_seconds=[{}]), record_of(DDP1, line_profiles=["p"])
    stored = Stored([record_of(SINGLE), phases, profile], "old")

    assert [phases] == stored.explain([SINGLE])
    assert [phases, profile] == stored.explain([DDP1, SINGLE])
    assert [] == stored.rates()
