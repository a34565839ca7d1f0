from __future__ import annotations

import dataclasses
import math

import pytest
from launch_records import record

from perf.verdict.configuration import configuration, differences, fingerprint
from perf.verdict.metrics import METRICS


def test_throughput_is_a_launchs_rate_and_compared_by_its_median_step():
    """A floor holds samples/s; two stacks are compared by median steps."""
    throughput = METRICS["throughput"]
    assert ("samples/s", "higher") == (throughput.unit, throughput.direction)
    assert [6400.0] == throughput.values([record(samples_per_second=6400.0)])
    assert [0.01] == throughput.compared_values([record(median_step_seconds=0.01)])


def test_peak_memory_is_the_largest_of_all_devices_and_none_on_a_cpu():
    """The device that needs most decides; where nothing is counted there is no value, and not 0."""
    memory = METRICS["peak_memory"]
    assert ("bytes", "lower") == (memory.unit, memory.direction)
    two = record(peak_memory_bytes=[{"cuda:0": 10}, {"cuda:0": 30, "cuda:1": 20}])
    assert [30.0] == memory.values([two, record(peak_memory_bytes=[{}])])
    assert [30.0] == memory.compared_values([two])


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf])
def test_what_is_no_positive_number_is_left_out(rate):
    """A record from elsewhere may hold anything."""
    assert [] == METRICS["throughput"].values([record(samples_per_second=rate)])


def test_a_configuration_is_what_was_run():
    """Sizes, workers, threads and data count; seed, stack and times don't."""
    here = record(threads=[{"torch": 3}], data={"kind": "fashion-mnist"})
    found = configuration(here)
    assert (3, "fashion-mnist") == (found["threads"], found["data"])
    other = dataclasses.replace(here, seed=7, stack={"torch": "3"}, median_step_seconds=9.0, started_at=9.0)
    assert fingerprint(found) == fingerprint(configuration(other))
    for change in ({"batch_size": 7}, {"workers": 9}, {"threads": [{"torch": 4}]}, {"data": {"kind": "x"}}):
        assert fingerprint(found) != fingerprint(configuration(dataclasses.replace(here, **change)))


def test_differences_are_named():
    """What changed, was added or has gone is told with both values."""
    assert ["a was 1 and is 2", "b was 1 and is not recorded", "c was not recorded and is 1"] == differences(
        {"a": 1, "b": 1, "d": 1}, {"a": 2, "c": 1, "d": 1}
    )


def test_a_fingerprint_is_the_same_everywhere():
    """It does not depend on the order of the keys, and does not change from release to release."""
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert "43258cff783fe703" == fingerprint({"a": 1, "b": 2})
