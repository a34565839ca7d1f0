from __future__ import annotations

from types import SimpleNamespace

import pytest

from perf.suite.selection import Machine, Need, expand_markexpr, need_of, why_not

H100S = Machine(gpus=4, cores=64, nccl=True)
LAPTOP = Machine(gpus=0, cores=2)


@pytest.mark.parametrize(
    ("need", "machine", "device", "expected"),
    [
        (Need("cuda", gpus=2), LAPTOP, "cpu", "needs 2 GPUs, 0 here"),
        (Need("cuda", gpus=1), LAPTOP, "cpu", "needs 1 GPU, 0 here"),
        (Need("cuda", gpus=2), H100S, "cuda", None),
        (Need("cpu", cores=2), LAPTOP, "cpu", None),
        (Need("cpu", cores=4), LAPTOP, "cpu", "needs 4 cores, 2 allowed here"),
        (Need("cpu", nodes=2), LAPTOP, "cpu", "needs 2 nodes, 1 here"),
        (
            Need("cuda", gpus=1, backends=frozenset({"nccl"})),
            Machine(gpus=1, cores=8, nccl=False),
            "cuda",
            "needs the backend nccl, which this stack's torch does not have",
        ),
    ],
)
def test_what_a_machine_cannot_run_is_said_in_words(need, machine, device, expected):
    """A test is skipped with what it needs and what there is; what can run has no reason against it."""
    assert expected == why_not(need, machine, device)


def test_cpu_variants_are_left_out_of_a_gpu_run_with_the_option_that_brings_them_back():
    """On a GPU machine CPU variants are skipped, and the reason names --device cpu."""
    assert "--device cpu" in (why_not(Need("cpu"), H100S, H100S.device("auto")) or "")


@pytest.mark.parametrize(
    ("asked", "machine", "expected"),
    [("auto", H100S, "cuda"), ("auto", LAPTOP, "cpu"), ("cpu", H100S, "cpu"), ("cuda", LAPTOP, "cuda")],
)
def test_a_run_measures_gpus_where_there_are_any(asked, machine, expected):
    """The device is what was asked for; `auto` takes GPUs where there are any."""
    assert expected == machine.device(asked)


def test_the_largest_of_several_marks_counts():
    """A pair needs as many GPUs as its larger member."""
    marks = [
        pytest.mark.gpus(n=1),
        pytest.mark.gpus(n=2),
        pytest.mark.device(kind="cuda"),
        pytest.mark.gpus(n=1),
    ]

    assert Need("cuda", gpus=2) == need_of(m.mark for m in marks)


def test_launches_beside_the_judged_ones_are_part_of_a_need():
    """A plan holds what a test will ask for, by its mark."""
    marks = [pytest.mark.device(kind="cuda"), pytest.mark.beside(extra="phases")]

    assert Need("cuda", beside=frozenset({"phases"})) == need_of(m.mark for m in marks)


def test_an_item_without_a_device_is_no_perf_test():
    """Only items with a mark `device` are asked what they need."""
    assert need_of([SimpleNamespace(name="slow", kwargs={})]) is None


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        ("gpus(2)", "gpus(n=2)"),
        ("gpus(2) and backend(nccl)", 'gpus(n=2) and backend(name="nccl")'),
        ("not gpus( 2 ) or nodes(1)", "not gpus(n=2) or nodes(n=1)"),
        ("backend('gloo')", 'backend(name="gloo")'),
        ("device(cpu) and cores(2)", 'device(kind="cpu") and cores(n=2)'),
        ("gpus(n=2)", "gpus(n=2)"),
        ("slow and not fast", "slow and not fast"),
        ("", ""),
    ],
)
def test_short_mark_expressions_become_keywords(short, expected):
    """pytest takes keywords only, people type the short form; what is already long stays."""
    assert expected == expand_markexpr(short)
