"""Ways to use several GPUs are told in words, with what takes part in the comparison."""

from __future__ import annotations

import pytest
from launch_records import record_of

from perf.catalogue import GROUPS
from perf.suite.source import Measurement
from perf.suite.ways import way_in_words

SINGLE, DP = (
    next(m for m in GROUPS["dp@mnist_cnn-gpu"].members if m.variant.strategy == strategy)
    for strategy in ("single", "dp")
)


def side(member, waited):
    """One launch whose window of 0.1 s, ten steps, waited for such a part of it."""
    record = record_of(
        member,
        0.01,
        step_seconds=[[0.01] * 10],
        window_seconds=0.1,
        wait_seconds=[waited / 10],
        window_seconds_per_rank=[0.1],
    )
    return Measurement(member, [record])


@pytest.mark.parametrize(
    ("several", "single", "expected"),
    [
        (0.01, 0.02, "10 ms."),
        (0.01, 0.4, "10 ms. For its data it waits 1% of the time, one process 40% of the time."),
        (0.2, 0.0, "10 ms. For its data it waits 20% of the time, one process 0% of the time."),
    ],
)
def test_who_waits_for_its_loader_is_told(several, single, expected):
    """Where one side does, the loader is part of what a speed-up says."""
    said = way_in_words(side(DP, several), side(SINGLE, single))

    assert said.startswith("dp on 2 GPUs (")
    assert said.endswith(f"a step takes 10 and {expected}")
