"""A large batch's learning rate: scaled, warmed up, and noted as it was used."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from perf.training.learning_rate import ScaledRate, factor_at, scale_of
from perf.verdict.solution import rate_at


@pytest.mark.parametrize(("rule", "expected"), [("none", 1.0), ("linear", 18.0), ("sqrt", math.sqrt(18.0))])
def test_a_rule_scales_with_the_batch(rule, expected):
    """576 over 32, as on 18 GPUs of the source: 2e-4 becomes 8.5e-4 by the root."""
    assert math.isclose(expected, scale_of(rule, 576, 32))


def test_a_warm_up_rises_to_the_scaled_rate():
    """Linear from one part in N to all of it at the last step of the warm-up, and stays."""
    assert [1.0, 2.0, 3.0, 4.0, 4.0] == [factor_at(step, 4.0, 4) for step in range(5)]
    assert 4.0 == factor_at(0, 4.0, 0)


@given(
    st.integers(0, 200), st.sampled_from(["none", "linear", "sqrt"]), st.integers(1, 64), st.integers(0, 128)
)
def test_driver_and_worker_compute_the_same_rate(step, rule, times, warmup):
    """Two formulas, written apart, of one rule: the driver asserts what the worker used."""
    mine = 2e-4 * factor_at(step, scale_of(rule, 4 * times, 4), warmup)

    assert math.isclose(rate_at(step, 2e-4, rule, times, warmup), mine, rel_tol=1e-12)


def test_the_rate_is_set_before_each_step_and_noted():
    """The optimizer steps with it; a schedule that is stepped between epochs multiplies on top."""
    parameter = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([parameter], lr=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    rate = ScaledRate(optimizer, 4.0, 2)
    places = []
    for step in range(4):
        if step == 3:
            schedule.step()
        parameter.grad = torch.ones(())
        optimizer.step()
        places.append(float(parameter.detach()))

    assert torch.allclose(torch.tensor([-1.0, -3.0, -5.0, -5.2]), torch.tensor(places))
    found = rate.describe()
    assert (0.5, 4.0, 2, 4) == (found["base"], found["scale"], found["warmup"], found["steps"])
    assert {"0": 1.0, "1": 2.0, "2": 2.0} == {k: v for k, v in found["used"].items() if k != "3"}
    assert math.isclose(0.2, found["used"]["3"])
