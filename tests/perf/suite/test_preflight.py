from __future__ import annotations

import pytest
from launch_records import PAIR_GROUP, spec_of

from perf.launch.preflight import NodeFacts
from perf.suite.preflight import Preflight, Unfit

FIT = NodeFacts(cores=2, gpus=(), shared_memory_free=2**30, open_files=4096, port=4711)


def test_a_fit_node_is_described_once():
    """Before the first launch every finding is said; the next launch of a fit node starts without a word."""
    said: list[str] = []
    preflight = Preflight(lambda: FIT, said.append)
    preflight(spec_of(PAIR_GROUP.members[0]))
    first = list(said)
    preflight(spec_of(PAIR_GROUP.members[1]))

    assert first == said
    assert all(
        any(word in line for line in said) for word in ("GPUs", "cores", "/dev/shm", "open files", "port")
    )


def test_an_unfit_node_stops_the_launch_with_a_remedy():
    """The error says what was looked at, what was found and what to do; it is said once for many launches."""
    said: list[str] = []
    preflight = Preflight(lambda: NodeFacts(1, (), 2**30, 4096, 4711), said.append)
    for _ in range(2):
        with pytest.raises(Unfit, match=r"preflight, cores: .*1 are allowed here\. Ask for more cores"):
            preflight(spec_of(PAIR_GROUP.member("ddp", count=2)))

    assert 1 == sum("cores" in line for line in said)
