"""How many collectives a step of DDP takes, counted by torch's profiler."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from perf.training.collectives import count_collectives, without_sync
from perf.training.strategies import wrap

CPU = torch.device("cpu")


class Wide(nn.Module):
    """Two layers of 1.5 MB of parameters each, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(600, 600), nn.Linear(600, 600)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x))


def loss_of(model, data, target):
    return nn.functional.mse_loss(model(data), target)


def counted(cpu, cap=None, switches=()):
    """Train two steps and count."""
    batch = torch.ones(2, 600), torch.zeros(2, 600)
    model = wrap(Wide(), "ddp", cpu, cap, switches)
    for _ in range(2):
        with without_sync(model, switches):
            loss_of(model, *batch).backward()
    before = [p.detach().clone() for p in model.parameters()]
    found = count_collectives(model, loss_of, batch, CPU, switches)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())
    return found


@pytest.mark.parametrize(("cap", "expected"), [(None, 2.0), (25, 1.0), (1, 2.0)])
def test_a_cap_says_how_many_buckets_there_are(cpu, process_group, cap, expected):
    """2.9 MB of gradients: an unset cap makes a small first bucket, 25 MB hold everything, 1 MB one layer."""
    assert expected == counted(cpu, cap)["all_reduces"]


def test_buffers_are_broadcast_unless_told_not_to(cpu, process_group):
    """Once a forward pass, whatever the gradients do."""
    assert 1.0 <= counted(cpu)["broadcasts"]
    assert 0.0 == counted(cpu, switches=("nobuffers",))["broadcasts"]


def test_under_no_sync_gradients_stay_at_home(cpu, process_group):
    """No all-reduce at all."""
    assert 0.0 == counted(cpu, switches=("nosync",))["all_reduces"]


def test_what_is_no_ddp_has_nothing_to_be_silent_about():
    """A plain model trains in the same loop."""
    with without_sync(Wide(), ("nosync",)):
        pass
