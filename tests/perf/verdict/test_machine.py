from __future__ import annotations

import pytest
from launch_records import record

from perf.contract import Rate
from perf.verdict.machine import RATE_UNITS, RATES
from perf.verdict.metrics import METRICS


def test_every_rate_is_a_metric_that_a_reference_may_name():
    """In its own unit, of which more is better."""
    assert RATE_UNITS == {name: METRICS[name].unit for name in RATE_UNITS}
    assert all(METRICS[name].higher_is_better for name in RATE_UNITS)


@pytest.mark.parametrize("kind", sorted(RATES), ids="-".join)
def test_a_card_names_a_rate_once(kind):
    """And a CPU's rates are among those of a GPU's machine."""
    assert len(RATES[kind]) == len(set(RATES[kind]))
    assert set(RATES[kind[0], "cpu"]) <= set(RATES[kind[0], "cuda"])


def test_a_launch_without_a_rate_has_no_value_of_it():
    """Neither has one that could not have it."""
    launches = [
        record(rates={"peer_copy": Rate(3.0, "B/s")}),
        record(rates={"peer_copy": Rate(None, "B/s", reason="one GPU")}),
        record(),
    ]

    assert [3.0] == METRICS["peer_copy"].values(launches)
