from __future__ import annotations

import dataclasses

import pytest
from launch_records import PAIR_GROUP, record_of
from reference_texts import VARIANT, occasion, whole

from perf.catalogue import GROUPS, Pair, groups
from perf.limits import Limit, Override
from perf.profiles import PROFILES
from perf.suite.judge import Judge
from perf.suite.outcomes import LimitMissed, Unproven
from perf.suite.source import Measurement
from perf.verdict.configuration import configuration, fingerprint
from perf.verdict.known import Library
from perf.verdict.outcome import Verdict
from perf.verdict.references import parse
from perf.verdict.system import System

SINGLE, DDP1, _ = PAIR_GROUP.members
PAIR = Pair(PAIR_GROUP, DDP1, SINGLE)
LIMIT = Limit("ddp_overhead", 1.2, "ratio", "Because 1.2 was measured.")
HERE = System("none", 0)
NOISE = (0.999, 1.001, 1.0, 0.998, 1.002, 1.0005, 0.9995, 1.0015, 0.9985, 1.0001)


class Launches:
    """A source with a fixed step a member; counts what it was asked for."""

    def __init__(self, steps, most=10, **changes):
        self.steps, self.most, self.changes = steps, most, changes
        self.have = 5

    def lacks(self, member):
        return None

    def measure(self, member):
        return self.sides("", [member])[0]

    def sides(self, test, members):
        return [
            Measurement(
                m, [record_of(m, self.steps[m.id] * NOISE[i], **self.changes) for i in range(self.have)]
            )
            for m in members
        ]

    def more(self, test, sides, launches):
        if launches > self.most:
            return False
        self.have = launches
        return True

    def explain(self, members):
        self.explained = members
        phases = {"forward": 0.004, "backward": 0.006}
        return [
            record_of(
                m, phase_seconds=[{k: [v * (1 + place)] * 40 for k, v in phases.items()}], warmup_steps=20
            )
            for place, m in enumerate(reversed(members))
        ]

    def rates(self):
        return []


class InGroups(Launches):
    """Steps that all take as long but for the last of ten, which waits for such a part of the whole window."""

    def __init__(self, steps, waited):
        super().__init__(steps)
        self.waited = waited

    def sides(self, test, members):
        return [
            dataclasses.replace(side, launches=[self.waiting(one, side.member) for one in side.launches])
            for side in super().sides(test, members)
        ]

    def waiting(self, one, member):
        share = self.waited[member.id]
        window = one.window_seconds / (1.0 - share)
        return dataclasses.replace(
            one,
            window_seconds=window,
            window_seconds_per_rank=[window],
            wait_seconds=[share * window],
        )


@pytest.fixture
def verdicts():
    """The verdict records that were written."""
    return []


@pytest.fixture
def judge(verdicts):
    def make(
        source,
        profile="quick",
        *,
        require_references=False,
        files=(),
        earlier=(),
        surprise=pytest.fail,
        overrides=None,
    ):
        return Judge(
            source,
            "test_x",
            PROFILES[profile],
            "run",
            verdicts.append,
            library=Library(files, HERE, "2026-11-28"),
            earlier=lambda member: list(earlier),
            margin=None,
            surprise=surprise,
            overrides=overrides or {},
            require_references=require_references,
        )

    return make


def steps(ratio):
    return {SINGLE.id: 0.01, DDP1.id: 0.01 * ratio}


def test_inside_the_limit_passes_and_is_recorded(judge, verdicts):
    """A pass returns, and its record has estimate, bounds, limit, launches and the detectable change."""
    judge(Launches(steps(1.05))).ratio(PAIR, LIMIT)

    (verdict,) = verdicts
    assert ("pass", 5, 1.2) == (verdict.verdict, verdict.launches, verdict.limit)
    assert 1.05 == pytest.approx(verdict.estimate, rel=0.01)
    assert verdict.low <= verdict.estimate <= verdict.high
    assert verdict.detectable > 0
    assert (DDP1.id, SINGLE.id) == (verdict.variant, verdict.against)


def test_beyond_the_limit_fails_after_more_launches(judge, verdicts):
    """Five launches never fail: the look at seven does, and the message says ratio, limit and launches."""
    source = Launches(steps(1.5))
    with pytest.raises(LimitMissed, match=r"1\.5.*limit 1\.2; 7 launches a side"):
        judge(source).ratio(PAIR, LIMIT)

    assert 7 == source.have
    assert ["fail"] == [v.verdict for v in verdicts]


def test_on_the_limit_is_inconclusive(judge, verdicts):
    """With the value on its limit no number of launches that the profile affords decides."""
    with pytest.raises(Unproven) as error:
        judge(Launches(steps(1.2))).ratio(PAIR, LIMIT)

    assert Verdict.INCONCLUSIVE is error.value.verdict
    assert 10 == verdicts[0].launches


def test_one_launch_a_side_has_no_bounds(judge, verdicts):
    """How far launches differ is not known from one: the record has an estimate alone, and so has the message."""
    source = Launches(steps(1.05))
    source.have = 1
    with pytest.raises(Unproven) as error:
        judge(source, "smoke").rung(PAIR, LIMIT)

    (verdict,) = verdicts
    assert 1.05 == pytest.approx(verdict.estimate)
    assert (None, None, 1) == (verdict.low, verdict.high, verdict.launches)
    assert " to " not in str(error.value).partition("limit")[0]


@pytest.mark.parametrize(
    ("waits", "ahead", "expected"),
    [(0.93, 5.0, "device's kernels gain nothing"), (0.02, 0.05, "bound by the host")],
)
def test_a_copy_that_is_waited_for_does_not_tell_what_holds_a_run_up(
    judge, verdicts, monkeypatch, waits, ahead, expected
):
    """A loop that waits for each copy is never ahead of its device; the rung that does not wait tells."""
    (pair,) = (
        Pair(g, g.members[1], g.members[0], "non_blocking") for g in groups("overlap") if "unet3d" in g.name
    )
    drains = {pair.base.id: waits, pair.new.id: ahead}
    monkeypatch.setattr(Measurement, "drain_steps", property(lambda self: drains[self.member.id]))
    judge(Launches({pair.base.id: 0.01, pair.new.id: 0.01})).rung(pair, LIMIT)

    assert expected in verdicts[0].reasons[0]


def test_smoke_asks_for_nothing_where_a_group_is_only_looked_at(judge, verdicts):
    """A group with one launch in smoke stays at one: inconclusive, and it says what it would take."""
    source = Launches(steps(1.5))
    source.have = 1
    with pytest.raises(Unproven, match="inconclusive"):
        judge(source, "smoke").ratio(PAIR, LIMIT)

    assert 1 == source.have


def test_stored_launches_are_judged_with_what_there_is(judge):
    """Where no launches can be added the judgement is made with those that are there."""
    with pytest.raises(Unproven, match="inconclusive"):
        judge(Launches(steps(1.5), most=0)).ratio(PAIR, LIMIT)


def test_an_invalid_launch_makes_the_verdict_invalid(judge, verdicts):
    """Facts about the machine come before numbers; the reason names the launch."""
    with pytest.raises(Unproven) as error:
        judge(Launches(steps(1.05), valid=False, reasons=["two ranks on one GPU"])).ratio(PAIR, LIMIT)

    assert Verdict.INVALID is error.value.verdict
    assert any("main-0001" in reason and "two ranks on one GPU" in reason for reason in verdicts[0].reasons)


def test_implausibly_fast_is_invalid_unless_it_may_be_faster(judge, verdicts):
    """DDP at half of one process's time did not do the work; against DataParallel it may be that much faster."""
    with pytest.raises(Unproven) as error:
        judge(Launches(steps(0.5))).ratio(PAIR, LIMIT)
    judge(Launches(steps(0.5))).ratio(PAIR, LIMIT, can_be_faster=True)

    assert Verdict.INVALID is error.value.verdict
    assert ["invalid", "pass"] == [v.verdict for v in verdicts]


def test_share_is_judged_against_its_limit(judge, verdicts):
    """A loader that takes 20 % of a step keeps a limit of 45 %."""
    group = GROUPS["loader@mnist_cnn-cpu"]
    full, synthetic, _ = group.members
    judge(Launches({full.id: 0.0125, synthetic.id: 0.01})).share(
        full, synthetic, Limit("s", 0.45, "share", "1.")
    )

    assert 0.2 == pytest.approx(verdicts[0].estimate, abs=0.01)


def test_one_sample_takes_one_value_a_launch(judge, verdicts):
    """The first epoch over the later ones, launch by launch."""
    judge(Launches(steps(1))).one_sample(
        SINGLE,
        lambda m: [e.epoch_seconds[0] / e.epoch_seconds[1] for e in m.launches],
        Limit("e", 1.5, "ratio", "1."),
        "e",
    )

    assert ("pass", 1.2) == (verdicts[0].verdict, pytest.approx(verdicts[0].estimate))


def test_without_a_reference_a_number_is_unreferenced(judge, verdicts):
    """Unreferenced is not a pass; with --require-references it fails."""
    source = Launches(steps(1))
    with pytest.raises(Unproven, match="unreferenced"):
        judge(source).floor(source.measure(SINGLE), "throughput")
    with pytest.raises(LimitMissed, match="has no references"):
        judge(source, require_references=True).floor(source.measure(SINGLE), "throughput")

    assert [None, None] == [v.limit for v in verdicts]
    assert [False, False] == [v.statistical for v in verdicts]


def test_an_oversubscribed_variant_is_never_judged(judge, verdicts):
    """It runs and is recorded, but its number is held against nothing, whatever it is."""
    with pytest.raises(Unproven) as error:
        judge(Launches(steps(1.5), flags=["oversubscribed"])).ratio(PAIR, LIMIT)

    assert Verdict.UNREFERENCED is error.value.verdict


def test_an_oversubscribed_variant_on_an_unfit_machine_is_invalid(judge):
    """What was not fit to be used fails the run, whatever it asked for."""
    source = Launches(steps(1.5), flags=["oversubscribed"], valid=False, reasons=["x"])
    with pytest.raises(Unproven) as error:
        judge(source).ratio(PAIR, LIMIT)

    assert Verdict.INVALID is error.value.verdict


EXPECTED = f"""
[[expected_failure]]
variant = "{DDP1.id}"
metric = "ddp_overhead"
reason = "ticket 12"
expires = 2027-01-01
"""


def expecting():
    return [parse(whole(EXPECTED).replace('cpu = "C"\n', ""), "f.toml", lambda variant: None)]


def test_a_failure_that_is_expected_is_no_failure(judge, verdicts):
    """pytest shows an expected failure; the record keeps the verdict and says that it was expected, and why."""
    with pytest.raises(pytest.xfail.Exception, match="ticket 12"):
        judge(Launches(steps(1.5)), files=expecting()).ratio(PAIR, LIMIT)

    assert [("fail", "ticket 12")] == [(v.verdict, v.expected) for v in verdicts]


def test_a_success_that_was_not_expected_is_told(judge, verdicts):
    """The test passes, whoever runs it is told, and the reasons say what to do."""
    told = []
    judge(Launches(steps(1.05)), files=expecting(), surprise=told.append).ratio(PAIR, LIMIT)

    assert ["ticket 12"] == told
    assert "remove the expected failure" in verdicts[0].reasons[0]


def test_an_invalid_launch_is_no_expected_failure(judge):
    """What was not measured is neither expected nor a surprise."""
    with pytest.raises(Unproven) as error:
        judge(Launches(steps(1.5), valid=False, reasons=["x"]), files=expecting()).ratio(PAIR, LIMIT)

    assert Verdict.INVALID is error.value.verdict


def test_a_floor_takes_the_launches_that_it_confirms(judge, verdicts):
    """Launches of the earlier run come with those of this one: with no reference all are told."""
    source = Launches(steps(1))
    earlier = [record_of(SINGLE, 0.02, run="before") for _ in range(5)]
    with pytest.raises(Unproven):
        judge(source, earlier=earlier).floor(source.measure(SINGLE), "throughput")

    assert 10 == verdicts[0].launches


def test_a_floor_is_not_judged_over_two_stacks(judge):
    """A confirmation by another stack confirms nothing."""
    source = Launches(steps(1))
    earlier = [record_of(SINGLE, 0.02, stack={"torch": "1.0"})]
    with pytest.raises(Unproven, match="different stacks"):
        judge(source, earlier=earlier).floor(source.measure(SINGLE), "throughput")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"valid": False, "reasons": ["hot"]}, "was not fit to be used: hot"),
        ({"workers": 7}, "workers was 7"),
        ({"shared_node": True}, "node was shared"),
    ],
)
def test_a_floor_confirms_only_launches_like_its_own(judge, verdicts, change, words):
    """Of another configuration, beside others, or unfit: left out, and that is said."""
    source = Launches(steps(1))
    earlier = [record_of(SINGLE, 0.02, run="before", **change) for _ in range(5)]
    with pytest.raises(Unproven):
        judge(source, earlier=earlier).floor(source.measure(SINGLE), "throughput")

    assert 5 == verdicts[0].launches
    assert "5 launches of the run to be confirmed were left out" in verdicts[0].reasons[-1]
    assert words in verdicts[0].reasons[-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stack": {"nccl": "2.99"}}, "different stacks.*nccl 2.99"),
        ({"launcher": "fork"}, "different launchers.*fork, fresh"),
        ({"shared_node": True}, "different conditions.*alone on a node, beside others"),
    ],
)
def test_launches_made_in_two_ways_are_not_held_together(judge, change, words):
    """One side holds launches that were started otherwise, beside others, or with another library: invalid."""
    source = Launches(steps(1.0))
    plain = source.sides
    source.sides = lambda test, members: [
        Measurement(
            side.member, [*side.launches[1:], dataclasses.replace(side.launches[0], **change)], side.replaced
        )
        for side in plain(test, members)
    ]
    with pytest.raises(Unproven, match=words) as error:
        judge(source).ratio(PAIR, LIMIT)

    assert Verdict.INVALID is error.value.verdict


@pytest.mark.parametrize(
    ("clocks", "words"),
    [
        ((["host"], ["host"]), None),
        (([], []), None),
        ((["host"], ["events"]), "1 launch by events, 9 launches by the host's clock"),
        ((["host"], ["events", "events"]), None),
        ((["host"], [None]), None),
    ],
)
def test_launches_that_were_timed_by_different_clocks_are_told(judge, verdicts, clocks, words):
    """What an event takes is no difference between the sides; several ranks have events in any case."""
    source = Launches(steps(1.0))
    plain, (usual, other) = source.sides, clocks
    source.sides = lambda test, members: [
        Measurement(
            side.member,
            [
                dataclasses.replace(launch, clocks=other if side.member == DDP1 and place == 0 else usual)
                for place, launch in enumerate(side.launches)
            ],
            side.replaced,
        )
        for side in plain(test, members)
    ]
    judge(source).ratio(PAIR, LIMIT)

    (verdict,) = verdicts
    told = [reason for reason in verdict.reasons if "not timed alike" in reason]
    assert (words is not None) is bool(told)
    assert words is None or words in told[0]


def test_launches_that_drift_leave_a_pass_inconclusive(judge, verdicts):
    """Where most launches of a side grew slower inside their window, the verdict says so instead of passing."""
    source = Launches({SINGLE.id: 0.01, DDP1.id: 0.01}, flags=["unsteady"])
    with pytest.raises(Unproven, match="grew longer or shorter inside their window"):
        judge(source).ratio(PAIR, LIMIT)

    assert ["inconclusive"] == [record.verdict for record in verdicts]


def test_launches_that_drift_leave_a_floor_inconclusive(judge, verdicts):
    """A floor is no exception: a machine that grew slower inside its windows shows no rate."""
    source = Launches({SINGLE.id: 0.01}, data={"kind": "x"}, flags=["unsteady"])
    measured = source.measure(SINGLE)
    here = configuration(measured.first)
    values = ", ".join(f"{k} = {v!r}".replace("'", '"') for k, v in here.items())
    known = whole(f"""
[reference.{SINGLE.id}.throughput]
unit = "samples/s"
direction = "higher"
expires = 2027-05-01
fingerprint = "{fingerprint(here)}"
configuration = {{ {values} }}
{occasion(launches=str([one.samples_per_second for one in measured.launches])).replace(VARIANT, SINGLE.id)}
""").replace('cpu = "C"\n', "")
    files = [parse(known, "f.toml", lambda variant: None)]
    with pytest.raises(Unproven, match="grew longer or shorter inside their window"):
        judge(source, files=files).floor(measured, "throughput")

    assert ["inconclusive"] == [record.verdict for record in verdicts]


def test_a_pass_tells_which_launches_were_taken_again(judge, verdicts):
    """A replacement is visible in the verdict, also where nothing is wrong with it."""
    source = Launches({SINGLE.id: 0.01, DDP1.id: 0.01})
    unfit = record_of(SINGLE, launch="main-0002", valid=False, reasons=["hot"], unfit=["hot"])
    plain = source.sides
    source.sides = lambda test, members: [
        Measurement(side.member, side.launches, (unfit,) if side.member is SINGLE else ())
        for side in plain(test, members)
    ]
    judge(source).ratio(PAIR, LIMIT)

    assert ["pass"] == [record.verdict for record in verdicts]
    assert any("launch main-0002 of" in reason and "hot" in reason for reason in verdicts[0].reasons)


def test_a_site_s_own_limit_is_what_is_judged_and_its_reason_is_told(judge, verdicts):
    """1.5 is beyond the suite's 1.2 and within the site's 2: a pass, whose record holds the site's limit and why."""
    judge(Launches(steps(1.5)), overrides={"ddp_overhead": Override(2.0, "old network until March")}).ratio(
        PAIR, LIMIT
    )

    assert [("pass", 2.0)] == [(v.verdict, v.limit) for v in verdicts]
    assert "The limit is this site's own: old network until March." in verdicts[0].reasons


def test_a_fail_carries_its_diagnosis(judge, verdicts):
    """Message and record name the phase that moved; both sides were looked at, and a pass asks for nothing."""
    source = Launches({DDP1.id: 0.03, SINGLE.id: 0.01})
    with pytest.raises(
        LimitMissed, match=r"(?s)limit 1\.2.*\nThe time is in backward: 12 ms of a step's 20 ms"
    ):
        judge(source).ratio(PAIR, LIMIT)

    assert [DDP1, SINGLE] == source.explained
    assert ("backward", 0, "n1") == tuple(verdicts[0].diagnosis[key] for key in ("phase", "rank", "host"))

    source = Launches({DDP1.id: 0.01, SINGLE.id: 0.01})
    judge(source).ratio(PAIR, LIMIT)
    assert not hasattr(source, "explained")
    assert {} == verdicts[1].diagnosis


def test_a_loader_that_delivers_in_groups_is_not_hidden_by_a_median(judge, verdicts):
    """A median step waits for nothing: the share would be 2 % where six tenths of the window are waited for."""
    full, synthetic = (
        GROUPS["loader@mnist_cnn-cpu"].member("single", mode=mode) for mode in ("full", "synthetic")
    )
    source = InGroups({full.id: 0.0102, synthetic.id: 0.01}, {full.id: 0.6, synthetic.id: 0.0})
    limit = Limit("loader_share", 0.55, "share", "Because.")
    with pytest.raises(LimitMissed, match=r"limit 0\.55"):
        judge(source).share(full, synthetic, limit)

    assert verdicts[-1].estimate == pytest.approx(1 - 0.4 / 1.02, abs=0.01)


def test_sides_on_both_ends_of_the_border_are_held_against_each_other_alike(judge, verdicts):
    """One waits for 26 %, the other for 24: by their means, which are 1.03 times as long, neither by its median."""
    group = GROUPS["weak_real@mnist_cnn-cpu"]
    one, two = group.members[:2]
    judge(InGroups({one.id: 0.01, two.id: 0.01}, {one.id: 0.24, two.id: 0.26})).ratio(
        Pair(group, two, one), LIMIT
    )

    (verdict,) = verdicts
    assert verdict.estimate == pytest.approx(0.76 / 0.74, rel=0.005)
