"""Judgements on launches that are not like each other, or not like themselves from beginning to end."""

from __future__ import annotations

import dataclasses

import pytest
from judging import DDP1, LIMIT, PAIR, SINGLE, Launches, steps
from launch_records import record_of
from reference_texts import VARIANT, occasion, whole

from perf.suite.outcomes import Unproven
from perf.suite.source import Measurement
from perf.verdict.configuration import configuration, fingerprint
from perf.verdict.outcome import Verdict
from perf.verdict.references import parse


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
