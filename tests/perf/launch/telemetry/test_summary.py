from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.launch.telemetry.reading import GpuReading, Header, HostReading, Sample
from perf.launch.telemetry.summary import grown, stretches_of, summarize, value_at

HEADER = Header("n1", "nvml", cores_allowed=4, memory_limit_bytes=8 * 2**30, memory_total_bytes=64 * 2**30)


def gpu(energy, **changes):
    """Return a card's reading; keywords replace fields."""
    fields = {
        "utilization_percent": 90.0,
        "memory_used_bytes": 10,
        "power_watts": 300.0,
        "event_reasons": [],
        "energy_joules_total": energy,
        "throttle_seconds_total": {"thermal": 0.0},
        "process_ids": [1, 2],
    }
    return GpuReading("u0", 0, "H100", **{**fields, **changes})


def sample(time, why="tick", cpu=None, gpus=(), **host):
    """Return a look; keywords are of the host's reading."""
    return Sample(time, why, HostReading(cpu_seconds_total=cpu, **host), list(gpus), [1])


@pytest.fixture
def ranks(make_rank):
    """Two ranks on one card each, whose windows run from 10 to 14."""
    return [
        make_rank(0, gpu_uuids=["u0"], window_edges=[[10.0, 14.0]]),
        make_rank(1, gpu_uuids=["u1"], window_edges=[[10.1, 13.9]]),
    ]


def test_counters_are_read_off_at_the_windows_edges(make_spec, ranks):
    """Energy, CPU seconds and pressure are what they grew by between the edges, not over the launch."""
    samples = [
        sample(0.0, "first", 0.0, [gpu(0.0)], busy_seconds_total=0.0, pressure_seconds_total={"cpu": 0.0}),
        sample(
            9.0, cpu=20.0, gpus=[gpu(900.0)], busy_seconds_total=30.0, pressure_seconds_total={"cpu": 3.0}
        ),
        sample(
            11.0, cpu=24.0, gpus=[gpu(1500.0)], busy_seconds_total=36.0, pressure_seconds_total={"cpu": 3.2}
        ),
        sample(
            15.0, cpu=40.0, gpus=[gpu(3500.0)], busy_seconds_total=60.0, pressure_seconds_total={"cpu": 3.6}
        ),
    ]
    found = summarize(make_spec(cores=4), ranks, [(HEADER, samples)])
    (node,), (card,) = found["nodes"], found["gpus"]

    assert 4.0 == found["window_seconds"]
    # From 22 at 10 s to 36 at 14 s.
    assert pytest.approx(14.0) == node["cpu_seconds"]
    assert pytest.approx(14.0 / 16.0) == node["cpu_efficiency"]
    assert pytest.approx((54.0 - 33.0) - 14.0) == node["other_cpu_seconds"]
    assert pytest.approx(0.4) == node["pressure_seconds"]["cpu"]
    assert pytest.approx(3000.0 - 1200.0) == card["energy_joules"]
    assert pytest.approx(450.0) == card["energy_watts"]
    assert 1.0 == node["edge_gap_seconds"]


def test_gauges_are_those_inside_the_window(make_spec, ranks):
    """What was before the window, or averages over it, does not count; the least, mean and greatest are kept."""
    samples = [
        sample(9.5, gpus=[gpu(0.0, power_watts=90.0, sm_clock_mhz=300.0)]),
        sample(10.0, "open", gpus=[gpu(0.0, power_watts=100.0, sm_clock_mhz=1900.0)]),
        sample(12.0, gpus=[gpu(0.0, power_watts=500.0, sm_clock_mhz=1700.0, event_reasons=["power cap"])]),
        sample(14.1, "close", gpus=[gpu(0.0, power_watts=600.0, sm_clock_mhz=1800.0)]),
        sample(14.2, gpus=[gpu(0.0, power_watts=95.0, sm_clock_mhz=200.0)]),
    ]
    (card,) = summarize(make_spec(), ranks, [(HEADER, samples)])["gpus"]

    assert {"min": 500.0, "mean": 550.0, "max": 600.0} == card["power_watts"]
    assert {"min": 1700.0, "mean": 1800.0, "max": 1900.0} == card["sm_clock_mhz"]
    assert {"power cap": pytest.approx(1 / 3)} == card["event_reasons"]
    assert [0] == card["ranks"]


def test_a_card_is_described_as_it_was_before_the_launch(make_spec, ranks):
    """The first look came before a rank touched it; memory with the driver's own part in it tells nothing."""
    before = gpu(0.0, memory_used_bytes=5, utilization_percent=3.0, process_ids=[9])
    (card,) = summarize(make_spec(), ranks, [(HEADER, [sample(0.0, "first", gpus=[before])])])["gpus"]
    assert {"memory_used_bytes": 5, "utilization_percent": 3.0, "processes": 1} == card["before"]

    older = dataclasses.replace(before, reserved_counted=True)
    (card,) = summarize(make_spec(), ranks, [(HEADER, [sample(0.0, "first", gpus=[older])])])["gpus"]
    assert card["before"]["memory_used_bytes"] is None


@pytest.mark.parametrize(
    ("pids", "others"),
    [([1], 0), ([1, 2], 1), ([500], 0), ([500, 501], 1), ([], 0), (None, None)],
)
def test_other_processes_are_told_from_the_launchs(make_spec, ranks, pids, others):
    """By number where ours are among them (1 is); in a container, where none is, by how many ranks use the card."""
    samples = [sample(12.0, gpus=[gpu(0.0, process_ids=pids)])]

    assert others == summarize(make_spec(), ranks, [(HEADER, samples)])["gpus"][0]["other_processes"]


def test_a_neighbour_of_a_launch_without_a_window_is_seen(make_spec, make_rank):
    """Of component rates nothing has a window: then the looks count in which the launch's processes were there."""
    ranks = [make_rank(window_edges=[], gpu_uuids=["u0"])]
    before = dataclasses.replace(sample(2.0, "first", gpus=[gpu(0.0, process_ids=[7])]), process_ids=[])
    alone = [before, sample(3.0, gpus=[gpu(0.0, process_ids=[1])])]
    shared = [*alone, sample(4.0, gpus=[gpu(0.0, process_ids=[1, 7])])]

    assert [0, 1] == [
        summarize(make_spec(), ranks, [(HEADER, samples)])["gpus"][0]["other_processes"]
        for samples in (alone, shared)
    ]


@pytest.mark.parametrize(("tree", "others"), [([], None), ([1], 0), ([1, 11, 12], 0), ([11, 12], 0)])
@pytest.mark.parametrize("neighbours", [0, 1])
def test_a_rank_on_two_cards_is_no_neighbour_of_the_other_rank(
    make_spec, make_rank, tree, others, neighbours
):
    """Who measures the way between two cards is on both; where no number is known there are as many as ranks."""
    ranks = [make_rank(n, window_edges=[], gpu_uuids=[f"u{n}"]) for n in (0, 1)]
    beside = [99] * neighbours
    cards = [
        gpu(0.0, process_ids=[11, *beside]),
        dataclasses.replace(gpu(0.0, process_ids=[11, 12, *beside]), uuid="u1", index=1),
    ]
    looks = [dataclasses.replace(sample(3.0, gpus=cards), process_ids=tree)]
    found = summarize(make_spec(), ranks, [(HEADER, looks)])["gpus"]

    assert [None if others is None else neighbours] * 2 == [card["other_processes"] for card in found]


def test_memory_is_held_against_what_is_allowed(make_spec, ranks):
    """The peak over all looks, in and out of the window, against the cgroup's limit."""
    samples = [sample(5.0, pss_bytes=2**30), sample(14.0, pss_bytes=2**31), sample(15.0)]
    (node,) = summarize(make_spec(), ranks, [(HEADER, samples)])["nodes"]

    assert (2**31, 8 * 2**30, 0.25) == (
        node["pss_peak_bytes"],
        node["memory_allowed_bytes"],
        node["memory_efficiency"],
    )


def test_what_was_not_seen_is_null_and_says_why(make_spec, ranks):
    """Without a sampler, without looks, without an enclosed edge there is null, and never 0."""
    none = summarize(make_spec(), ranks, [(None, [])], "the sampler can't be started")
    assert ([], [], {"telemetry": "the sampler can't be started"}) == (
        none["nodes"],
        none["gpus"],
        none["unread"],
    )
    (node,) = summarize(make_spec(), ranks, [(HEADER, [sample(12.0, cpu=5.0)])])["nodes"]
    assert (None, None, None, None) == (
        node["cpu_seconds"],
        node["cpu_efficiency"],
        node["pss_peak_bytes"],
        node["steal_seconds"],
    )


def test_ranks_that_disagree_on_their_windows_have_none(make_rank):
    """An edge that is missing, or a clock that went back, leaves nothing to read counters at."""
    assert [] == stretches_of([make_rank(0, window_edges=[[1.0, 2.0]]), make_rank(1)])
    assert [] == stretches_of([make_rank(0, window_edges=[[1.0]])])
    assert [] == stretches_of([make_rank(0, window_edges=[[2.0, 1.0]])])
    assert [(0.5, 2.0), (3.0, 4.5)] == stretches_of(
        [
            make_rank(0, window_edges=[[1.0, 2.0], [3.0, 4.5]]),
            make_rank(1, window_edges=[[0.5, 1.5], [3.1, 4.0]]),
        ]
    )


def test_a_counter_that_went_back_is_null():
    """A driver that was loaded again begins at 0."""
    samples = [sample(t, cpu=v) for t, v in ((0.0, 5.0), (1.0, 1.0), (2.0, 2.0))]

    assert grown(samples, [(0.0, 2.0)], lambda s: s.host.cpu_seconds_total) is None


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=9),
    st.floats(0, 1),
)
def test_a_counter_between_two_looks_lies_between_their_values(steps, where):
    """Interpolation never leaves the readings that enclose it."""
    time = value = 0.0
    points = []
    for dt, dv in steps:
        time, value = time + dt, value + dv
        points.append((time, value))
    at = points[0][0] + where * (points[-1][0] - points[0][0])
    found = value_at(points, min(at, points[-1][0]))

    assert found is not None
    assert points[0][1] - 1e-9 <= found <= points[-1][1] + 1e-9
    assert value_at(points, points[-1][0] + 1.0) is None
