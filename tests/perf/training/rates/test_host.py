from __future__ import annotations

import torch

from perf.training.rates import host
from perf.training.rates.host import count, kernel_launches, python_loop
from perf.training.rates.timing import Timer


def test_the_loop_does_its_work():
    """The sum of the remainders by 7 of the first numbers."""
    assert sum(number % 7 for number in range(host.ITERATIONS)) == count()


def test_a_loop_s_rate_is_in_iterations(monkeypatch):
    """One call is as many as the loop has."""
    monkeypatch.setattr(Timer, "repeat", lambda self, work: [work() and 1.0])

    assert ("python_loop", float(host.ITERATIONS)) == (
        (found := python_loop(Timer(lambda: None, 1.0)))[0],
        found[1].value,
    )


def test_kernels_are_launched_as_often_as_they_are_counted(monkeypatch):
    """On a CPU, where work is done when the call returns, there is no round trip of its own."""
    numbers = []
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *a, **k: numbers.append(zeros(*a, **k)) or numbers[-1])
    monkeypatch.setattr(Timer, "repeat", lambda self, work: [work() is None and 1.0])
    found = dict(kernel_launches(torch.device("cpu"), Timer(lambda: None, 1.0)))

    assert ["kernel_launches"] == list(found)
    assert found["kernel_launches"].value == float(numbers[0]) == host.LAUNCHES
