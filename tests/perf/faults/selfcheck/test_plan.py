from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.faults.catalogue import FAULTS
from perf.faults.on_cpu import ON_CPU
from perf.faults.on_gpu import ON_GPU
from perf.faults.selfcheck.plan import Carrier, plan, seconds_for, why_not

TWO_CORES = Carrier("cpu", 2, 0, root=True)


def names(found):
    return [step.fault.name for step in found.steps]


def test_two_cores_carry_every_fault_that_needs_no_gpu():
    """All of them are planted, what one launch shows first, and every other one says why not."""
    found = plan([*ON_CPU, *ON_GPU], TWO_CORES, clean=30, seconds=1.0)

    assert {fault.name for fault in ON_CPU} == set(names(found))
    assert {fault.name for fault in ON_GPU} == set(found.left_out)
    kinds = [step.fault.of_a_launch for step in found.steps]
    assert sorted(kinds, reverse=True) == kinds
    assert {"acts on a GPU (--device cuda)"} == set(found.left_out.values())


@given(st.integers(0, 200))
def test_clean_judgements_are_spread_and_none_is_lost(clean):
    """Their number is kept, and no fault is followed by two more of them than another."""
    counts = [step.clean for step in plan(ON_CPU, TWO_CORES, clean=clean, seconds=1.0).steps]

    assert clean == sum(counts)
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("name", "carrier", "reason"),
    [
        ("one-core", Carrier("cpu", 1, 0, root=True), "needs 2 cores, 1 here"),
        ("small-shared-memory", Carrier("cpu", 2, 0, root=False), "can be planted by root only"),
        ("gloo-for-nccl", Carrier("cuda", 16, 1, root=True), "needs 2 GPUs, 1 here"),
        ("one-core", Carrier("cuda", 16, 1, root=True), "needs no GPU: planted on the CPU (--device cpu)"),
        ("one-core", TWO_CORES, ""),
        ("tf32-overridden", Carrier("cuda", 4, 1, root=False), ""),
    ],
)
def test_what_a_machine_lacks_is_said(name, carrier, reason):
    """Each fault that can't be carried has its reason, in words."""
    assert reason == why_not(FAULTS[name], carrier)


def test_one_gpu_gets_what_nine_minutes_hold_the_most_telling_first():
    """The estimates of what is planted keep to the time; what is left out says how much it would have taken."""
    one = Carrier("cuda", 16, 1, root=True)
    found = plan([*ON_CPU, *ON_GPU], one, clean=0, seconds=seconds_for(one))

    assert 540.0 == seconds_for(one)
    assert sum(step.fault.seconds for step in found.steps) <= 540.0
    assert {"unpinned", "tf32-overridden", "device-time-5", "autotune-dropped"} <= set(names(found))
    assert "takes about 250 s" in found.left_out["device-time-1"]


def test_two_gpus_carry_what_lies_between_them_too():
    """With their time, faults of NCCL and of DataParallel are planted."""
    two = Carrier("cuda", 16, 2, root=True)
    found = plan(ON_GPU, two, clean=0, seconds=seconds_for(two))

    assert {"gloo-for-nccl", "gpu-taken-twice", "nccl-over-sockets", "dp-autotuned"} <= set(names(found))
    assert 12 <= len(found.steps)


def test_nothing_to_plant_needs_no_clean_judgement():
    """A machine that carries nothing has an empty plan."""
    assert () == plan(ON_GPU, TWO_CORES, clean=30, seconds=1.0).steps
