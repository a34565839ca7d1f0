"""Blocks of two loops that train the same, in pairs, and the exact interval of their median."""

from __future__ import annotations

import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from perf.training.clocks import HostClock
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.loop import train
from perf.training.meter import Meter
from perf.training.paired import (
    FEWEST_PAIRS,
    Block,
    Nothing,
    Pairs,
    bare,
    launch_clock,
    median_interval,
)
from perf.training.ring import RingLoader
from perf.training.watched import Watched
from tests.perf.training.helpers import TinyWorkload, separable

CPU = torch.device("cpu")


def ring() -> RingLoader:
    plan = LoaderPlan(8, 0, 0, 1, distributed=False, pin_memory=False, seed=1)
    return RingLoader(native_loader(separable(80, 1), plan), CPU)


def test_a_launch_on_a_cpu_has_the_hosts_clock():
    """It is the one that there is, and nothing is trained to find that out."""
    assert type(launch_clock(ring(), CPU, (None, None, None))) is HostClock


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_launchs_clock_is_chosen_behind_a_warm_up_and_held_to_a_window(monkeypatch, wrong):
    """Steps of microseconds have the host's; where a window says that the host had run ahead, events."""
    left = [wrong]

    class Either(HostClock):
        def __init__(self, device):
            super().__init__()

        def suit(self, lag, step):
            assert lag >= 0
            assert step > 0

        def fits(self, lag, step):
            left[0] -= 1
            return left[0] < 0

        def name(self, marks):
            return "events" if wrong else "host"

    monkeypatch.setattr("perf.training.paired.EitherClock", Either)
    monkeypatch.setattr("perf.training.paired.CudaClock", lambda devices: ("events", devices))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    model = TinyWorkload().build_model()
    trains = (model, TinyWorkload.loss_function, TinyWorkload().make_optimizer(model))
    monkeypatch.setattr("perf.training.paired.train", lambda model, device, *rest: train(model, CPU, *rest))
    clock = launch_clock(ring(), torch.device("cuda", 0), trains)

    # A busy machine's window goes on where its steps were faster than the warm-up's: a stretch more.
    assert left[0] < 0
    if wrong:
        assert ("events", [torch.device("cuda", 0)]) == clock
    else:
        assert type(clock) is HostClock


def trained(instrumented: bool) -> torch.Tensor:
    """Parameters after a block of 20 steps, and the one before it, from one seed."""
    torch.manual_seed(1)
    model = TinyWorkload().build_model()
    batches, optimizer = Block(ring(), 20), TinyWorkload().make_optimizer(model)
    if instrumented:
        meter = Meter(
            HostClock(), warmup_steps=0, rewarm_steps=0, timed_steps=50, min_seconds=0.0, stop_when_timed=True
        )
        train(model, CPU, Watched(batches, meter, waits=False), TinyWorkload.loss_function, optimizer, meter)
        assert 21 == meter.total_steps
    else:
        bare(model, CPU, batches, TinyWorkload.loss_function, optimizer)
    return torch.cat([parameter.flatten() for parameter in model.parameters()])


def test_both_loops_train_the_same():
    """The ratio compares measuring with not measuring, and nothing else: parameters are equal bit for bit."""
    assert torch.equal(trained(instrumented=False), trained(instrumented=True))


def test_a_block_hands_out_the_rings_batches_in_turn():
    """One to begin with and as many as asked for, beginning with the first each time."""
    source = ring()
    batches = list(Block(source, 19))

    assert 20 == len(batches)
    assert [source.batches[i % 8] for i in range(20)] == batches


def test_a_block_has_its_steps_and_no_beginning_or_end_of_a_loop():
    """Its edges lie behind the batch to begin with, and behind its last step: where the next batch is asked for."""
    told = []
    block = Block(ring(), 3, lambda: told.append("edge"))
    told.extend("step" for _ in block)

    assert ["step", "edge", "step", "step", "step", "edge"] == told


@given(st.integers(1, 40), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_is_the_narrowest_that_covers(n, confidence):
    """The exact coverage of the order statistics is enough, and the next narrower pair's is not."""

    def coverage(k: int) -> float:
        return 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n

    if coverage(0) < confidence:
        with pytest.raises(ValueError, match=f"{n} values can't give an interval"):
            median_interval(range(n), confidence)
        return
    low, high = median_interval(range(n), confidence)

    assert n - 1 == low + high
    assert coverage(low) >= confidence
    assert low + 1 > high - 1 or coverage(low + 1) < confidence


@given(st.lists(st.floats(0.5, 2.0), min_size=FEWEST_PAIRS, max_size=50))
def test_the_interval_holds_the_median(ratios):
    """Whatever the order of the values, the median lies inside."""
    low, high = median_interval(ratios)

    assert low <= statistics.median(ratios) <= high


def test_the_fewest_pairs_are_the_fewest_that_cover():
    """One pair less has no interval of that confidence."""
    median_interval(range(FEWEST_PAIRS))
    with pytest.raises(ValueError, match="take more"):
        median_interval(range(FEWEST_PAIRS - 1))


def test_pairs_change_their_order():
    """Bare, instrumented, instrumented, bare: whatever drifts is shared by both sides."""
    sides = []
    pairs = Pairs(ring(), CPU, 2, 100, (Nothing(torch.zeros(())),) * 3, HostClock())
    plain = pairs._block
    pairs._block = lambda side: sides.append(side) or plain(side)
    found = pairs.take(3)

    assert ["bare", "instrumented", "instrumented", "bare", "bare", "instrumented"] == sides[4:]
    assert 3 == len(found)
    assert 3 == len(pairs.closing)


def test_a_window_ends_behind_its_block(monkeypatch):
    """Every step is marked, and what a window's end costs is no part of the block, but a time of its own."""
    order = []
    plain_marks, plain_close = HostClock.marks, Meter._close

    def marks(self, due):
        begin, step, points = plain_marks(self, due)
        return begin, lambda *more: order.append("step") or step(*more), points

    monkeypatch.setattr(HostClock, "marks", marks)
    monkeypatch.setattr(Meter, "_close", lambda self: order.append("close") or plain_close(self))
    monkeypatch.setattr(HostClock, "synchronize", lambda self: order.append("edge"))
    pairs = Pairs(ring(), CPU, 2, 100, (Nothing(torch.zeros(())),) * 3, HostClock())
    pairs._block("instrumented")

    assert ["step", "edge", "step", "step", "edge", "close"] == order[order.index("step") :][:6]
    assert 1 == len(pairs.closing)


@pytest.mark.parametrize(("window", "looked"), [(100, 20), (1000, 2)])
def test_each_note_is_timed_by_itself(window, looked):
    """Between real steps; those that look at loss and batch, one in ten of a window of 1000, stand apart."""
    workload = TinyWorkload()
    model = workload.build_model()
    trains = (model, workload.loss_function, workload.make_optimizer(model))
    noted = Pairs(ring(), CPU, 9, window, trains, HostClock()).noted(2)

    assert (20 - looked, looked, 20) == (len(noted.steps), len(noted.looks), len(noted.waits))


def test_a_loss_of_nothing_costs_what_a_loss_does():
    """A meter detaches each loss, which makes a tensor; so does that of the network that does nothing."""
    loss = Nothing(torch.zeros(()))

    assert loss.data is not loss.data
    assert loss.data.data_ptr() == loss.data.data_ptr()
