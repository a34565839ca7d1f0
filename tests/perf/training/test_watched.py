"""A loader that is watched is the loader, and its waits are noted."""

from __future__ import annotations

import pytest
import torch

from perf.training.watched import Watched
from tests.perf.training.meters import Batches, make_meter


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


def test_the_window_is_interrupted_before_a_partial_batch_is_asked_for(device):
    """However long the loader takes for it, that is in no window."""
    meter = make_meter(device, warmup_steps=1, timed_steps=100)
    edges = []
    meter.on_window = lambda opens: edges.append(device.now)
    meter.start_epoch()
    for number, target in enumerate(Watched(Late(device, 5, last=2), meter, partial=True)):
        device.queue(1.0)
        meter.step(None, target)
        assert (3 if number == 4 else 0) == meter.window_steps

    assert pytest.approx(3.0, rel=0.02) == meter.window_seconds == edges[1] - edges[0]


def test_batches_that_are_there_are_handed_on(device):
    """Nothing is waited for and no wait noted; first batch and end of each epoch are told as ever."""
    meter = make_meter(device, timed_steps=7, stop_when_timed=False)
    watched = Watched(Batches(device, 6, wait=0.5), meter, waits=False)
    found = []
    for _ in range(2):
        meter.start_epoch()
        for batch in watched:
            found.append(int(batch[0]))
            device.queue(1.0)
            meter.step(None, batch)
        found.append(meter.end_epoch()[1:])

    first = (6, 24, 0.5)
    assert [0, 1, 2, 3, 4, 5, first, 0, 1, 2, 3, 4, 5, first] == found
    assert ([], 7, 12) == (meter.waits, meter.window_steps, meter.total_steps)
    assert torch.equal(torch.zeros(4), watched.first_batch)


def test_no_batch_that_is_there_is_an_epoch_of_none(device):
    """An empty loader has an end like any other."""
    meter = make_meter(device)
    meter.start_epoch()
    assert [] == list(Watched(Batches(device, 0), meter, waits=False))

    assert (0.0, 0, 0, 0.0) == meter.end_epoch()


class Late(Batches):
    """Batches of which the last one is 60 s late."""

    def __iter__(self):
        for number, batch in enumerate(super().__iter__()):
            if number == self.count - 1:
                self.device.host(60.0)
            yield batch
