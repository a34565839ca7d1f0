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
    first, last, finite = loss_tenths([torch.tensor(loss) for loss in losses])

    assert pytest.approx(math.fsum(losses[:tenth]) / tenth) == first
    assert pytest.approx(math.fsum(losses[-tenth:]) / tenth) == last
    assert finite is True


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_one_bad_loss_is_enough(bad):
    """Also in the middle, where no mean would show it."""
    losses = [torch.tensor(1.0) for _ in range(30)]
    losses[15] = torch.tensor(bad)

    assert (None, None, False) == loss_tenths(losses)
    assert (None, None, None) == loss_tenths([])
