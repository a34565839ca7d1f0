from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.training.learned import digest, loss_tenths


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_digest_sees_the_last_bit_and_the_place_of_a_parameter(dtype):
    """Two values exchanged, or one that differs in its last bit, give another digest; a copy gives the same."""
    torch.manual_seed(0)
    network = torch.nn.Linear(7, 3).to(dtype)
    exchanged, nudged, same = (copy.deepcopy(network) for _ in range(3))
    with torch.no_grad():
        exchanged.weight[0, [0, 1]] = network.weight[0, [1, 0]]
        bits = nudged.weight.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize])
        bits[2, 6] ^= 1

    assert digest(network) == digest(same)
    assert 3 == len({digest(n) for n in (network, exchanged, nudged)})


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60))
def test_losses_are_means_of_the_first_and_the_last_tenth(losses):
    """A tenth of all steps, at least one."""
    tenth = max(1, len(losses) // 10)
    first, last, finite = loss_tenths(
        [torch.tensor(loss) for loss in losses], range(len(losses)), len(losses)
    )

    assert pytest.approx(math.fsum(losses[:tenth]) / tenth) == first
    assert pytest.approx(math.fsum(losses[-tenth:]) / tenth) == last
    assert finite is True


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_one_bad_loss_is_enough(bad):
    """Also in the middle, where no mean would show it."""
    losses = [torch.tensor(1.0) for _ in range(30)]
    losses[15] = torch.tensor(bad)

    assert (None, None, False) == loss_tenths(losses, range(30), 30)
    assert (None, None, None) == loss_tenths([], [], 0)


@settings(deadline=None)
@given(st.integers(20, 400), st.integers(1, 30), st.integers(0, 40))
def test_a_loss_stands_for_the_steps_up_to_the_next_that_was_kept(total, every, dense):
    """Of losses that fall along a line, kept seldom or often, the tenths are told as if each had been kept."""
    steps = sorted({*range(min(dense, total)), *range(0, total, every)})
    first, last, _ = loss_tenths([torch.tensor(float(total - step)) for step in steps], steps, total)
    tenth = total // 10
    exact = [sum(part) / tenth for part in (range(total, total - tenth, -1), range(tenth, 0, -1))]

    # Each stands for at most `every` steps, the earliest of which it is.
    assert exact[0] <= first + 1e-9 <= exact[0] + every
    assert exact[1] <= last + 1e-9 <= exact[1] + every


def test_as_many_losses_kept_elsewhere_tell_the_same():
    """A tenth is one of steps, not of what was kept: warm-ups are kept whole, and windows in part."""
    losses = {step: torch.tensor(2.0 if step < 100 else 1.0) for step in range(1000)}
    kept = [*range(32), *range(32, 1000, 10)]

    assert (2.0, 1.0, True) == loss_tenths([losses[step] for step in kept], kept, 1000)
