"""Faults that a launch itself must show: it fails, or is invalid, in words that name the fault. Real launches."""

from __future__ import annotations

import os
import re

import pytest

from perf.faults.catalogue import FAULTS, INVALID, LAUNCH
from perf.faults.plant import planted_environment
from perf.launch.failure import LaunchFailed
from perf.launch.launcher import launch

pytestmark = pytest.mark.selfcheck

ASKED_FOR = {
    "precision-dropped": {"precision": "bf16"},
    "compile-dropped": {"optimizations": ["compile"]},
    # A launch of that size takes 10 to 25 s, so its window has begun long before.
    "rank-hangs": {"time_limit_seconds": 60.0},
}
"""What is asked of the launch, beside the profile's: a setting that is dropped must have been asked for."""

MINE = [name for name, fault in FAULTS.items() if fault.caught_by in (LAUNCH, INVALID)]


@pytest.mark.parametrize("name", MINE)
def test_a_planted_fault_is_caught_and_named(name, planned, own_stack):
    """The launch gives no good record, and says so in the catalogue's words."""
    fault = FAULTS[name]
    if fault.ranks > len(os.sched_getaffinity(0)):
        pytest.skip(f"{name} needs {fault.ranks} cores")
    if fault.root and os.geteuid() != 0:
        pytest.skip(f"{name} can be planted by root only")
    spec = planned(fault.ranks, **ASKED_FOR.get(name, {}))
    environ = planted_environment(name, os.environ)
    if fault.caught_by == LAUNCH:
        with pytest.raises(LaunchFailed) as caught:
            launch(spec, own_stack, lock=None, environ=environ)
        said = str(caught.value)
    else:
        record = launch(spec, own_stack, lock=None, environ=environ)
        assert not record.valid
        said = "\n".join(record.reasons)

    assert re.search(fault.words, said), said


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_clean_launch_is_fit(ranks, planned, own_stack):
    """Without a fault the same launch is valid: what catches faults catches no clean one."""
    if ranks > len(os.sched_getaffinity(0)):
        pytest.skip(f"needs {ranks} cores")
    record = launch(planned(ranks), own_stack, lock=None)

    assert record.valid, record.reasons
    assert record.telemetry["nodes"][0]["cpu_seconds"] > 0
