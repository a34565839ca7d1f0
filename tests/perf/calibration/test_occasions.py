from __future__ import annotations

import datetime

import pytest
from launch_records import record_of

from perf.calibration.occasions import new_occasions, stack_words
from perf.catalogue import GROUPS, home
from perf.verdict.configuration import configuration

MEMBER = GROUPS["loader@mnist_cnn-cpu"].member("single", mode="full")
DDP = GROUPS["ranks@mnist_cnn-cpu"].members[0]
NOON = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.UTC).timestamp()
ENVIRONMENT = {"user": "maria", "variables": {"SLURM_JOB_ID": "4711", "LSB_JOBID": None}}


def launches(member=MEMBER, count=5, **changes):
    return [
        record_of(member, 0.01 + i / 10_000, started_at=NOON + i, stack={"torch": "2.14.1"}, **changes)
        for i in range(count)
    ]


def test_launches_become_an_occasion_with_its_provenance():
    """Date, node, stack, run, job and who recorded it, the values in the order of the launches, and their spread."""
    found, left = new_occasions(launches(), ENVIRONMENT)
    assert [] == left
    (one,) = found
    assert (MEMBER.id, "throughput", configuration(launches()[0])) == (
        one.variant,
        one.metric,
        one.configuration,
    )
    recorded = one.recorded
    assert ("2026-11-28", "n1", "torch 2.14.1", "run", ("4711",), "maria") == (
        recorded.date,
        recorded.node,
        recorded.stack,
        recorded.run,
        recorded.jobs,
        recorded.recorded_by,
    )
    assert pytest.approx([64 / (0.01 + i / 10_000) for i in range(5)]) == list(recorded.values)
    assert (5, pytest.approx([0.01 + i / 10_000 for i in range(5)])) == (one.spread.launches, list(one.steps))


def test_devices_that_count_memory_give_a_ceiling_too():
    """A GPU's peak memory is recorded beside its throughput; a quantity that some launches lack is not."""
    with_memory = launches(peak_memory_bytes=[{"cuda:0": 100}])
    assert ["throughput", "peak_memory"] == [one.metric for one in new_occasions(with_memory, {})[0]]
    mixed = [*with_memory[:4], launches()[4]]
    assert ["throughput"] == [one.metric for one in new_occasions(mixed, {})[0]]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"valid": False, "reasons": ["throttled"]}, "launch main-0001 is invalid: throttled"),
        ({"flags": ["oversubscribed"]}, "is oversubscribed"),
        ({"flags": ["planted: slow-decode"]}, "with the fault 'slow-decode' planted in it"),
    ],
)
def test_what_speaks_against_a_launch_keeps_it_out(changes, why):
    """One launch that is not fit keeps its variant out of the references, and is named."""
    bad = launches()
    bad[2] = record_of(MEMBER, **changes, stack={"torch": "2.14.1"}, started_at=NOON)
    found, left = new_occasions(bad, {})
    assert [] == found
    assert [MEMBER.id] == [one.variant for one in left]
    assert why in left[0].why


def test_too_few_or_mixed_launches_are_left_out():
    """Four launches are no occasion; nor are five of two configurations or two stacks."""
    assert "has 4 launches" in new_occasions(launches(count=4), {})[1][0].why
    two = [*launches(count=3), *launches(count=2, workers=9)]
    assert "several configurations" in new_occasions(two, {})[1][0].why
    stacks = [*launches(count=4), record_of(MEMBER, started_at=NOON, stack={"torch": "9"})]
    assert "several stacks" in new_occasions(stacks, {})[1][0].why


def test_launches_for_other_purposes_do_not_count():
    """Added launches, profiled ones, other plans and modes, and groups that are not the variant's home are left out."""
    elsewhere = next(g for g in GROUPS.values() if g.name == "epochs@mnist_cnn-cpu")
    others = [
        *launches(escalation="test_x"),
        *launches(phase_seconds=[{}]),
        *launches(line_profiles=["x"]),
        *launches(plan="epochs"),
        *launches(mode="synthetic"),
        *launches(group=elsewhere.name),
    ]
    assert ([], []) == new_occasions(others, {})
    assert home(MEMBER.id).group == MEMBER.group


def test_each_node_is_an_occasion_of_its_own():
    """Launches on two nodes are two occasions."""
    both = [*launches(DDP, host=["n1", "n1"]), *launches(DDP, host=["n2", "n2"])]
    assert ["n1", "n2"] == [one.recorded.node for one in new_occasions(both, {})[0]]


def test_a_stack_in_words():
    """What is not known is left out; nothing known is said."""
    assert "torch 2, CUDA 13.0, cuDNN 91900, NCCL 2.28" == stack_words(
        {"torch": "2", "cuda": "13.0", "hip": None, "cudnn": 91900, "nccl": "2.28"}
    )
    assert "unknown" == stack_words({})
