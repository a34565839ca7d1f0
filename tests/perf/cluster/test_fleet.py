"""The same tests on every node."""

from __future__ import annotations

import dataclasses

import pytest
from launch_records import PAIR_GROUP, record_of

from perf.cluster.fleet import on_each, safe, sentences, standings
from perf.cluster.jobs import Job, Plan


def records(rates: dict[str, list[float]]):
    """Return launches of one variant with these rates on these nodes."""
    base = record_of(PAIR_GROUP.members[0])
    return [
        dataclasses.replace(base, host=[node], samples_per_second=rate)
        for node, of_node in rates.items()
        for rate in of_node
    ]


def test_a_slow_node_is_named_with_its_part_of_the_median():
    """One node of six at 80 % is found, the others are not."""
    rates = {f"n{i}": [100.0 + i * 0.2, 100.3 + i * 0.2] for i in range(5)} | {"n5": [80.0, 80.2]}

    found = standings(records(rates))

    assert ["n5"] == [standing.node for standing in found if standing.far]
    assert ["n5 is slower than the fleet"] == [said[:27] for said in sentences(found)]
    assert pytest.approx(0.8, abs=0.01) == next(s.ratio for s in found if s.far)


def test_noise_of_launches_hides_what_it_is_as_large_as():
    """A node that is off by what its own launches differ by is no outlier."""
    rates = {f"n{i}": [90.0, 100.0, 110.0] for i in range(5)} | {"n5": [85.0, 95.0, 105.0]}

    assert ["No node of 6 is off"] == [said[:19] for said in sentences(standings(records(rates)))]


def test_two_nodes_are_too_few_to_say_which_is_off():
    """The ratios are told all the same."""
    (said,) = sentences(standings(records({"a": [100.0], "b": [50.0]})))

    assert "too few to say which is off" in said


def test_nothing_measured_is_said():
    """An empty fleet is no healthy one."""
    assert ["No node has left a measurement."] == sentences(standings([]))


def test_jobs_of_one_node_are_repeated_on_each_and_others_left_out():
    """Names hold the node's, made fit for a file name."""
    one = Job(
        name="a", nodes=1, gpus=1, cores=1, exclusive=True, planned_seconds=1.0, seconds=60, node_ids=["x"]
    )
    two = Job(
        name="b", nodes=2, gpus=1, cores=1, exclusive=True, planned_seconds=1.0, seconds=60, node_ids=["y"]
    )

    plan = on_each(Plan([one, two], {}), ["n1", "../n2"])

    assert [("a.n1", "n1"), ("a..._n2", "../n2")] == [(job.name, job.hold_to) for job in plan.jobs]
    assert {"y": "needs several nodes; it can't be held to one"} == plan.left_out
    assert "n_1" == safe("n/1")
