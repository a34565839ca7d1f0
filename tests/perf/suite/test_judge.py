"""Judgements of launches whose steps are known, by every kind of rule."""

from __future__ import annotations

import pytest
from judging import DDP1, LIMIT, PAIR, SINGLE, InGroups, Launches, steps
from reference_texts import whole

from perf.catalogue import GROUPS, Pair, groups
from perf.limits import Limit, Override
from perf.suite.outcomes import LimitMissed, Unproven
from perf.suite.source import Measurement
from perf.verdict.outcome import Verdict
from perf.verdict.references import parse


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
