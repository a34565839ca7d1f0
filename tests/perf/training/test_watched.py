"""A loader that is watched is the loader, and its waits are noted."""

from __future__ import annotations

import pytest
import torch

from perf.training.watched import Watched
from tests.perf.training.meters import TARGET, Batches, make_meter


def test_a_watched_loader_delivers_what_the_loader_does(device):
    """Wrapping changes nothing about batches or their order, and it can be iterated again."""
    meter = make_meter(device)
    watched = Watched(Batches(device, 6), meter)

    for _ in range(2):
        assert [0, 1, 2, 3, 4, 5] == [int(batch[0]) for batch in watched]


def test_an_error_of_the_loader_comes_through(device):
    """A worker that died is the training loop's error, with its own traceback."""

    def broken():
        yield 1
        raise RuntimeError("worker 0 died")

    with pytest.raises(RuntimeError, match="worker 0 died"):
        list(Watched(broken(), make_meter(device)))


def test_every_wait_is_noted(device):
    """One for each batch, an epoch's first and last among them, whatever the meter does meanwhile."""
    meter = make_meter(device)
    for _ in Watched(Batches(device, 6, wait=0.25, last=1), meter):
        device.host(1.0)

    assert [0.25] * 6 == meter.waits


def test_the_first_batch_is_kept_and_its_wait_told_each_epoch(device):
    """What a network is looked at with is the first batch of all; how long it took is told of every epoch's."""
    meter = make_meter(device, timed_steps=1000)
    watched, told = Watched(Batches(device, 3, wait=0.5), meter), []
    for _ in range(2):
        meter.start_epoch()
        list(watched)
        told.append(meter.end_epoch()[3])
    watched.loader = Batches(device, 3, wait=2.0)
    list(watched)

    assert [0.5, 0.5] == told
    assert torch.equal(torch.zeros(4), watched.first_batch)


@pytest.mark.parametrize("as_pair", [False, True])
def test_a_partial_last_batch_closes_the_window_before_it_is_trained_on(device, as_pair):
    """Whether batches are data and targets or, of an audit, numbers."""
    meter = make_meter(device, warmup_steps=1)
    batches = list(Batches(device, 5, last=2))
    watched = Watched([[None, batch] for batch in batches] if as_pair else batches, meter)
    meter.start_epoch()
    held = []
    for _ in watched:
        held.append(meter.window_steps)
        meter.step(None, TARGET)

    assert [0, 0, 0, 0, 3] == held
