from __future__ import annotations

import dataclasses

import pytest
from launch_records import PAIR_GROUP, record_of

from perf.verdict.advice import TRY, TRY_OF_ALL
from perf.verdict.diagnosis import RateMoved, diagnose, moved_rate
from perf.verdict.diagnosis_facts import MOST, settings_that_differ, stack_that_differs
from perf.verdict.moved import Side

SINGLE, _, DDP2 = PAIR_GROUP.members
USUAL = {"data": 0.001, "forward": 0.003, "backward": 0.005, "communication": 0.001, "optimizer": 0.001}


def side(member, *ranks, **changes):
    phases = [{name: [seconds] * 40 for name, seconds in rank.items()} for rank in ranks]
    hosts = ["n1"] * len(ranks)
    timed = record_of(member, phase_seconds=phases, warmup_steps=20, host=hosts)
    return Side(member.id, [record_of(member, **changes)], timed if ranks else None)


def test_one_paragraph_names_phase_rank_host_and_what_to_try():
    """A rank that comes late is named with its host and with what the others wait."""
    late = {**USUAL, "communication": 0.0, "optimizer": 0.051}
    waiting = {**USUAL, "communication": 0.05}
    found = diagnose(
        side(DDP2, waiting, late),
        side(SINGLE, {**USUAL, "communication": 0.0}),
        metric="scaling_overhead",
        rates={},
        profiles=["profiles/a.lprof"],
    )

    assert "\n" not in found.text
    assert found.text.startswith(
        "Rank 1 of n1 comes late to every step: its optimizer takes 51 ms, that of the others 1 ms, and they wait 50 ms"
    )
    assert "Line profiles of every rank: profiles/a.lprof." in found.text
    assert found.text.endswith("clocks, other processes, the cores that it is bound to.")
    assert ("optimizer", 1, "n1") == (found.phase, found.rank, found.host)
    assert {"text", "phase", "rank", "host", "differs", "rate", "profiles"} == set(found.as_json())


def test_a_setting_of_one_side_alone_is_named():
    """What was read back and differs, with both values; what the variants' names say does not count."""
    one = side(SINGLE, USUAL, effective=[{"cudnn_benchmark": True, "world_size": 1}], stack={"torch": "2.1"})
    other = side(DDP2, USUAL, effective=[{"cudnn_benchmark": False, "world_size": 2}], stack={"torch": "2.0"})
    found = diagnose(one, other, metric="step_time", rates={})

    assert ("torch is 2.1 and was 2.0", "cudnn_benchmark is True and was False") == found.differs
    assert "In stack and settings differ: torch is 2.1 and was 2.0; cudnn_benchmark" in found.text


def test_equal_sides_are_said_to_be_equal():
    """That nothing differs is told too."""
    one = side(SINGLE, USUAL)
    assert (
        "Nothing that was recorded of stack and settings differs."
        in diagnose(one, one, metric="step_time", rates={}).text
    )


def test_transports_and_threads_count_as_settings():
    """NCCL over sockets is seen where it was not; so are threads."""
    now = [record_of(SINGLE, telemetry={"transports": {"NET/Socket": 2}}, threads=[{"torch": 2}])]
    then = [record_of(SINGLE, telemetry={"transports": {"P2P": 2}}, threads=[{"torch": 1}])]

    assert [
        "threads.torch is 2 and was 1",
        "NCCL's transports are NET/Socket and were P2P",
    ] == settings_that_differ(now, then)


def test_many_differences_are_cut_and_counted():
    """A paragraph holds a few; how many more there are is said."""
    now = [record_of(SINGLE, effective=[{f"key{n}": n for n in range(20)}])]
    found = settings_that_differ(now, [record_of(SINGLE)])

    assert MOST == len(found)
    assert "and 15 more" == found[-1]
    assert [] == settings_that_differ([], now) == stack_that_differs(now, [])


@pytest.mark.parametrize(
    ("rates", "moved"),
    [
        ({"all_reduce_mnist_cnn": (0.5e9, 1e9), "memory_copy": (0.1e9, 1e9)}, "all_reduce_mnist_cnn"),
        ({"all_reduce_mnist_cnn": (0.99e9, 1e9)}, None),
        ({"all_reduce_mnist_cnn": (0.5e9, None)}, None),
        ({}, None),
    ],
)
def test_the_rate_that_a_phase_rests_on_moves_with_it(rates, moved):
    """Only rates of the phase count, only those that are known, and only what fell by more than they repeat."""
    found = moved_rate("communication", rates)
    assert moved == (found and found.name)


def test_the_rate_that_fell_most_is_named():
    """Of two the worse one, with how far it fell."""
    rates = {"file_read": (0.9, 1.0), "python_loop": (0.5, 1.0)}
    assert RateMoved("python_loop", 0.5, 1.0) == moved_rate("data", rates)
    found = diagnose(
        side(SINGLE, {**USUAL, "data": 0.1}), side(SINGLE, USUAL), metric="throughput", rates=rates
    )
    assert "The machine's python_loop has moved with it: 50.0 % below what is known of it." in found.text
    assert "python_loop" == found.rate


def test_rates_that_were_not_measured_or_are_not_known_are_said_so():
    """Nothing is called unmoved that nobody looked at."""
    new, base = side(SINGLE, {**USUAL, "data": 0.1}), side(SINGLE, USUAL)
    said = [
        diagnose(new, base, metric="throughput", rates=rates).text
        for rates in ({}, {"file_read": (1.0, None)}, {"file_read": (1.0, 1.0)})
    ]

    assert "were not measured before it" in said[0]
    assert "Nothing is known of the machine's rates" in said[1]
    assert "None of the machine's rates that it rests on has moved (file_read)." in said[2]


def test_a_stored_number_is_told_with_the_stack_that_it_came_from():
    """Against a reference no phase is called grown, and another torch is named."""
    new = side(SINGLE, {**USUAL, "data": 0.1}, stack={"torch": "2.9"})
    found = diagnose(new, None, metric="throughput", rates={}, reference="torch 2.8, CUDA 12")

    assert found.text.startswith("Most of the time is in data: 100 ms of a step's")
    assert ("the reference was recorded with torch 2.8, CUDA 12, this is torch 2.9",) == found.differs
    assert () == diagnose(new, None, metric="throughput", rates={}, reference="torch 2.9, CUDA 12").differs


def test_a_start_is_told_without_phases():
    """Start-up has no steps: its seconds before the first one, on both sides."""
    now = dataclasses.replace(side(SINGLE), launches=[record_of(SINGLE, startup_seconds=[{"imports": 9.0}])])
    then = dataclasses.replace(side(SINGLE), launches=[record_of(SINGLE, startup_seconds=[{"imports": 3.0}])])
    found = diagnose(now, then, metric="start_up", rates={})

    assert found.text.startswith(
        "The time is in start-up of n1: 9.1 s until the first step is over, 3.1 s in "
    )
    assert "start-up" == found.phase


def test_without_phases_it_says_so():
    """A variant that trains in a step of its own can't be timed phase by phase."""
    found = diagnose(side(SINGLE), side(SINGLE), metric="rung", rates={})

    assert found.text.startswith("No launch of it could be timed phase by phase.")
    assert ("", None) == (found.phase, found.rank)


@pytest.mark.parametrize(
    ("now", "told", "tried"),
    [
        ({"copy": 0.00102}, "No phase of a step moved: phase by phase it takes 12 ms for 12 ms.", False),
        (
            {name: 1.009 * seconds for name, seconds in {**USUAL, "copy": 0.0011}.items()},
            "No phase alone holds the time: phase by phase the step takes 12.2 ms for 12 ms, each a little more.",
            True,
        ),
        (
            {name: 0.8 * seconds for name, seconds in USUAL.items()},
            "Timed phase by phase the step was no longer: it takes 9.8 ms for 12 ms.",
            False,
        ),
    ],
    ids=["as it was", "all a little", "shorter"],
)
def test_no_phase_is_blamed_that_did_not_move(now, told, tried):
    """Launches with phases may be as fast as the other side's, or slower in all phases alike."""
    found = diagnose(
        side(SINGLE, {**USUAL, "copy": 0.001, **now}),
        side(SINGLE, {**USUAL, "copy": 0.001}),
        metric="step_time",
        rates={"host_to_device_pinned": (1.0, 2.0)},
    )

    assert found.text.startswith(told)
    assert tried is (TRY_OF_ALL in found.text)
    assert tried is ("Try:" in found.text)
    assert ("", None, "") == (found.phase, found.rank, found.rate)


def test_a_first_step_that_takes_longer_is_a_start_that_does():
    """Compiling and searching lie in it: the parts before may be what they were."""
    now, then = (
        dataclasses.replace(
            side(SINGLE),
            launches=[record_of(SINGLE, startup_seconds=[{"imports": 4.0}], first_step_seconds=seconds)],
        )
        for seconds in (6.0, 0.5)
    )
    found = diagnose(now, then, metric="start_up", rates={})

    assert found.text.startswith(
        "The time is in start-up of n1: 10 s until the first step is over, 4.5 s in "
    )
    assert TRY["start-up"] in found.text


def test_memory_is_told_without_phases():
    """No phase tells of it, and none was asked for: what differs and what to look at is told."""
    found = diagnose(
        side(SINGLE, stack={"torch": "2.1"}),
        side(SINGLE, stack={"torch": "2.0"}),
        metric="peak_memory",
        rates={},
    )

    assert found.text.startswith(
        "In stack and settings differ: torch is 2.1 and was 2.0. Try: look at the allocator's"
    )
