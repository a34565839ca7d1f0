from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from perf.faults.catalogue import FAULTS, INVALID, LAUNCH
from perf.faults.plant import INJECT
from perf.machine import REPOSITORY

_SPEC = importlib.util.spec_from_file_location("planted", INJECT / "planted.py")
planted = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(planted)

PERF_TESTS = "\n".join(path.read_text() for path in sorted(Path(REPOSITORY, "perf").glob("test_*.py")))


def test_every_injected_fault_has_its_plant_and_every_plant_its_fault():
    """The two lists of names are one."""
    assert {name for name, fault in FAULTS.items() if fault.injected} == set(planted.PLANTS)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_says_who_must_catch_it_and_by_which_words(fault):
    """The perf test is one that there is, the words are a regular expression, and they are not the fault's name."""
    assert fault.caught_by in (LAUNCH, INVALID) or f"def {fault.caught_by}(" in PERF_TESTS
    re.compile(fault.words)
    assert fault.name not in fault.words
    assert fault.kind in ("data", "device", "configuration", "communication", "infrastructure")
    assert fault.what.endswith(".")


def test_nothing_that_detects_reads_the_plants_name():
    """They are known to the room of faults alone, to what passes the option on, and to who refuses such launches."""
    allowed = ("perf/faults", "perf/suite/measuring.py", "perf/suite/options.py", "perf/calibration")
    paths = [*Path(REPOSITORY, "perf").rglob("*.py"), *Path(REPOSITORY, "models").rglob("*.py")]
    found = [
        str(path.relative_to(REPOSITORY))
        for path in paths
        if any(word in path.read_text() for word in ("STACKPROOF_PLANT", "perf.faults", "planted: "))
    ]
    assert [] == [path for path in found if not path.startswith(allowed)]
