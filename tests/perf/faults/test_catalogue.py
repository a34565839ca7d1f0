from __future__ import annotations

import re
from pathlib import Path

import pytest

from perf.faults.catalogue import FAULTS, INVALID, KINDS, LAUNCH
from perf.machine import REPOSITORY

PERF_TESTS = "\n".join(path.read_text() for path in sorted(Path(REPOSITORY, "perf").glob("test_*.py")))


def test_every_injected_fault_has_its_plant_and_every_plant_its_fault(plants):
    """The two lists of names are one; what is not injected is in the environment, or put beside the launch."""
    assert {name for name, fault in FAULTS.items() if fault.injected} == set(plants)
    assert all(fault.environment or fault.beside for fault in FAULTS.values() if not fault.injected)


def test_at_least_twenty_faults_need_no_gpu():
    """So many a machine with two cores carries, where others would need what it lacks."""
    assert 20 <= sum(not fault.gpu and fault.ranks <= 2 for fault in FAULTS.values())


@pytest.mark.parametrize("fault", [f for f in FAULTS.values() if not f.of_a_launch], ids=lambda f: f.name)
def test_a_verdict_that_must_fail_is_one_that_the_perf_tests_can_come_to(fault):
    """A comparison runs in a profile that compares, and a fail by statistics has launches enough for one."""
    assert fault.compares == (fault.caught_by in ("test_a_step_takes_no_longer", "test_no_more_steps_stall"))
    assert fault.launches in (None, 1, 7, 10)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_says_who_must_catch_it_and_by_which_words(fault):
    """The perf test is one that there is, the words are a regular expression, and they are not the fault's name."""
    assert fault.caught_by in (LAUNCH, INVALID) or f"def {fault.caught_by}(" in PERF_TESTS
    re.compile(fault.words)
    assert fault.name not in fault.words
    assert fault.kind in KINDS
    assert fault.what.endswith(".")


def test_nothing_that_detects_reads_the_plants_name():
    """They are known to the room of faults alone, to what passes the option on, and to who refuses such launches."""
    allowed = (
        "perf/faults",
        "perf/suite/launching.py",
        "perf/suite/options.py",
        "perf/calibration",
        "perf/report/history/runs.py",
    )
    paths = [*Path(REPOSITORY, "perf").rglob("*.py"), *Path(REPOSITORY, "models").rglob("*.py")]
    found = [
        str(path.relative_to(REPOSITORY))
        for path in paths
        if any(word in path.read_text() for word in ("STACKPROOF_PLANT", "perf.faults", "planted: "))
    ]
    assert [] == [path for path in found if not path.startswith(allowed)]
