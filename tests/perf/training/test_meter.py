"""Which steps are timed, for how long, and what lies outside the window."""

from __future__ import annotations

import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.training.meter import Meter, Watched, halves
from tests.perf.training.helpers import FakeDevice

SAMPLES = 4

ON_A_GPU = {
    "warmup_steps": 32,
    "timed_steps": 100,
    "min_seconds": 2.0,
    "max_seconds": 5.0,
    "warmup_seconds": 0.4,
}
"""Sizes like those of a profile's window on a GPU."""


def make_meter(device: FakeDevice, **changes) -> Meter:
    options = {
        "warmup_steps": 3,
        "rewarm_steps": 0,
        "timed_steps": 5,
        "min_seconds": 0.0,
        "stop_when_timed": True,
    }
    return Meter(device, **{**options, **changes})


class Batches:
    """A loader with a length: a wait for each batch, and one for the end of its workers."""

    def __init__(self, device: FakeDevice, count: int, wait: float = 0.01, end: float = 0.0) -> None:
        self.device, self.count, self.wait, self.end = device, count, wait, end

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        for number in range(self.count):
            self.device.host(self.wait)
            yield number
        self.device.host(self.end)


def run_epoch(device: FakeDevice, meter: Meter, batches, work: float = 1.0, loss=None) -> tuple:
    """One epoch of a loop that queues `work` seconds a step; as perf.training.loop.train does."""
    meter.start_epoch()
    for _ in Watched(batches, meter):
        device.queue(work)
        device.host(0.001)
        if meter.step(loss, SAMPLES):
            break
    return meter.end_epoch()


# --- the window


def test_warm_up_is_not_timed(device):
    """The window begins behind the warm-up, however slow that was, and holds the steps that were asked for."""
    meter = make_meter(device)
    meter.start_epoch()
    for step in range(8):
        device.queue(50.0 if step < 3 else 1.0)
        assert (step == 7) is meter.step(None, SAMPLES)
    meter.end_epoch()

    assert pytest.approx([1.0] * 5) == meter.step_seconds()
    assert pytest.approx(5.0) == meter.window_seconds
    assert (5, 5 * SAMPLES, 8) == (meter.window_steps, meter.window_samples, meter.total_steps)
    assert meter.finished


def test_marks_are_prepared_before_the_window(device):
    """As many as the window's steps and its beginning, or what is left of them; the time it takes is in no step."""
    meter = make_meter(device, timed_steps=9)
    run_epoch(device, meter, Batches(device, 8))
    run_epoch(device, meter, Batches(device, 8))

    assert [10, 5] == device.prepared
    assert pytest.approx([1.0] * 9, rel=0.02) == meter.step_seconds()


def test_a_window_can_be_opened_by_hand(device):
    """Whoever measures the meter itself opens the window where it wants it."""
    meter = make_meter(device, warmup_steps=0, timed_steps=2)
    meter.open_window()
    device.queue(1.0)
    assert meter.step(None, SAMPLES) is False
    device.queue(2.0)
    assert meter.step(None, SAMPLES) is True

    assert pytest.approx([1.0, 2.0]) == meter.step_seconds()


def test_nothing_waits_for_the_device_inside_the_window(device):
    """Between the window's edges the host runs ahead of the device: no synchronize of the meter's."""
    meter = make_meter(device)
    meter.start_epoch()
    for _ in range(3):
        device.queue(1.0)
        meter.step(None, SAMPLES)
    before, start = device.synchronized, device.now
    for _ in range(4):
        device.queue(1.0)
        device.host(0.001)
        meter.step(None, SAMPLES)

    assert before == device.synchronized
    assert pytest.approx(0.004) == device.now - start


def test_steps_sum_to_the_window_on_a_device_with_a_queue(device):
    """Marks behind queued work and the host's clock between synchronizes agree."""
    meter = make_meter(device, timed_steps=20)
    run_epoch(device, meter, Batches(device, 40), work=0.3)

    assert pytest.approx(sum(meter.step_seconds()), rel=0.01) == meter.window_seconds


def test_the_window_is_as_long_as_its_least_time(device):
    """The warm-up's second half tells how many steps fill `min_seconds`; a slow first step does not count."""
    meter = make_meter(device, warmup_steps=10, timed_steps=5, min_seconds=20.0)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(0.5 if meter.total_steps else 30.0)
        stopped = meter.step(None, SAMPLES)

    assert pytest.approx(22.0) == meter.window_seconds
    assert 44 == meter.window_steps


def test_a_window_goes_on_where_its_steps_were_faster_than_the_warm_up(device):
    """What the warm-up's pace would make too short is extended until it lasts its least time."""
    meter = make_meter(device, warmup_steps=10, timed_steps=5, min_seconds=20.0)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(1.0 if meter.total_steps < 10 else 0.1)
        stopped = meter.step(None, SAMPLES)

    # 22 steps for 20 s at the warm-up's pace; 17.8 s lacked then, which take another 196 steps.
    assert 22 + 196 == meter.window_steps == len(meter.step_seconds())
    assert pytest.approx(21.8) == meter.window_seconds
    assert pytest.approx(sum(meter.step_seconds())) == meter.window_seconds
    assert [23, 197] == device.prepared


def test_a_rank_goes_on_with_one_that_lacks_time(device):
    """Each rank tells what it lacks when its steps are done, also nothing, and all take what one still needs."""
    told = []
    answers = iter([30, 4, 0])

    def agree(steps: int) -> int:
        told.append(steps)
        return next(answers)

    meter = make_meter(device, warmup_steps=10, min_seconds=2.0, agree=agree)
    run_epoch(device, meter, Batches(device, 100, wait=0.0))

    # At a second a step it wants 5 steps, since so many were asked for; after 30 it lacks nothing.
    assert [5, 0, 0] == told
    assert 34 == meter.window_steps == len(meter.step_seconds())
    assert meter.finished


@pytest.mark.parametrize(("seconds", "steps"), [(0.1, 100), (1.0, 60), (4.0, 50)])
def test_a_window_that_would_take_too_long_has_fewer_steps(device, seconds, steps):
    """As many as fill `max_seconds` at the warm-up's pace, no more than were asked for and no fewer than 50."""
    meter = make_meter(device, warmup_steps=10, timed_steps=100, min_seconds=2.0, max_seconds=60.0)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(seconds)
        stopped = meter.step(None, SAMPLES)

    assert steps == meter.window_steps == len(meter.step_seconds())


def test_the_steps_asked_for_are_taken_even_if_they_take_longer(device):
    """`min_seconds` never shortens a window."""
    meter = make_meter(device, timed_steps=50, min_seconds=0.5)
    run_epoch(device, meter, Batches(device, 100))

    assert 50 == meter.window_steps


@pytest.mark.parametrize(
    ("seconds", "queue", "steps"),
    [(0.001, 0, 32), (0.0161, 0, 25), (0.03, 0, 14), (0.08, 0, 10), (0.08, 24, 24), (0.08, 32, 32)],
)
def test_a_warm_up_that_would_take_too_long_has_fewer_steps(device, seconds, queue, steps):
    """As many as fill its time behind slow first ones, no fewer than 10 and than a loader's queue holds."""
    meter = make_meter(device, warmup_steps=32, rewarm_steps=queue, warmup_seconds=0.4)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(seconds if meter.total_steps >= 3 else 30.0)
        stopped = meter.step(None, SAMPLES)

    assert (steps, steps + 5) == (meter.warmup_steps, meter.total_steps)


def test_a_shortened_warm_up_is_no_pace_for_a_graph_before_it_is_captured(device):
    """Eager steps and the capture take longer than what is replayed: the window has all its steps at once."""
    meter = make_meter(device, captured=True, **ON_A_GPU)
    meter.start_epoch()
    stopped = False
    while not stopped:
        step = meter.total_steps + 1
        device.queue(0.06 if step < 12 else 0.5 if step == 12 else 0.03)
        stopped = meter.step(None, SAMPLES)

    assert (20, 100) == (meter.warmup_steps, meter.window_steps)
    assert [101] == device.prepared


@pytest.mark.parametrize(("seconds", "steps"), [(0.0224, 100), (0.08, 63), (0.2, 50)])
def test_a_shortened_warm_up_still_tells_how_long_a_step_takes(device, seconds, steps):
    """By its second half, behind what compiled: windows of 5 s at most, of 50 steps at least."""
    meter = make_meter(device, **ON_A_GPU)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(seconds if meter.total_steps >= 3 else 10.0)
        stopped = meter.step(None, SAMPLES)

    assert (max(10, round(0.4 / seconds)), steps) == (meter.warmup_steps, meter.window_steps)
    assert [steps + 1] == device.prepared


def test_ranks_agree_on_the_steps_of_their_warm_up(device):
    """The slowest rank would take fewest, and all take what the fastest one wants: they open their windows together."""
    meter = make_meter(device, warmup_steps=32, warmup_seconds=0.4, agree=lambda steps: max(steps, 28))
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(0.08)
        stopped = meter.step(None, SAMPLES)

    assert 28 == meter.warmup_steps


@pytest.mark.parametrize("warmup_steps", [0, 1])
def test_a_least_time_needs_a_warm_up_to_judge_by(device, warmup_steps):
    """Without two steps of warm-up a step's time is not known, and the window would never end."""
    with pytest.raises(ValueError, match="warm-up steps don't tell how many fill 2.0 s"):
        make_meter(device, warmup_steps=warmup_steps, min_seconds=2.0)


def test_without_warm_up_the_first_step_still_lies_outside(device):
    """The first step holds lazy initialization, so a window never begins before it."""
    meter = make_meter(device, warmup_steps=0, timed_steps=2)
    run_epoch(device, meter, Batches(device, 9))

    assert (2, 3) == (meter.window_steps, meter.total_steps)


def test_every_rank_takes_the_steps_that_the_slowest_wish_needs(device):
    """A rank tells the others once how many steps it wants, and takes the number that all agree on."""
    wishes = []

    def agree(steps: int) -> int:
        wishes.append(steps)
        return 12

    aligned = []
    meter = make_meter(device, agree=agree, align=lambda: aligned.append(meter.total_steps))
    for _ in range(3):
        run_epoch(device, meter, Batches(device, 7))

    assert [5] == wishes
    assert 12 == meter.window_steps == len(meter.step_seconds())
    # Before every opening all ranks wait for each other: behind the warm-up, and in later epochs behind a first step.
    assert [3, 8, 15] == aligned


def test_ranks_of_different_speed_agree(device, monkeypatch):
    """Two ranks that would want different numbers of steps take the larger one, both."""
    slow, fast = FakeDevice(), FakeDevice()
    wishes = []
    for fake, work in ((slow, 1.0), (fast, 0.1)):
        monkeypatch.setattr("perf.training.meter.time", fake.as_time)
        probe = make_meter(fake, warmup_steps=4, min_seconds=10.0, agree=lambda n: wishes.append(n) or n)
        run_epoch(fake, probe, Batches(fake, 5, wait=0.0), work=work)
    for fake, work in ((FakeDevice(), 1.0), (FakeDevice(), 0.1)):
        monkeypatch.setattr("perf.training.meter.time", fake.as_time)
        meter = make_meter(fake, warmup_steps=4, min_seconds=10.0, agree=lambda n: max(wishes) if n else 0)
        run_epoch(fake, meter, Batches(fake, 500, wait=0.0), work=work)
        assert max(wishes) == meter.window_steps == len(meter.step_seconds())

    assert wishes[0] < wishes[1]


def test_a_window_whose_steps_are_faster_than_the_warm_up_goes_on(device):
    """Steps are added until the window has its least time; what was timed before stays in it."""
    meter = make_meter(device, warmup_steps=4, min_seconds=10.0)
    meter.start_epoch()
    done = False
    while not done:
        device.queue(2.0 if meter.total_steps < 4 else 0.5)
        done = meter.step(None, SAMPLES)

    assert meter.window_seconds >= 10.0
    assert [0.5] * meter.window_steps == pytest.approx(meter.step_seconds())
    assert meter.window_steps * SAMPLES == meter.window_samples
    assert meter.window_steps < 40


def test_the_edges_of_the_window_are_announced(device):
    """Whoever reads counters at the edges is called once at each, never inside."""
    meter = make_meter(device, stop_when_timed=False)
    edges = []
    meter.on_window = lambda opens: edges.append((opens, meter.total_steps))
    run_epoch(device, meter, Batches(device, 12))

    assert [(True, 3), (False, 8)] == edges


# --- epochs


def test_a_window_is_interrupted_where_its_epoch_ends(device):
    """It closes at the epoch's last step and opens again behind the first steps of the next: only steps are timed."""
    meter = make_meter(device, timed_steps=9, rewarm_steps=2)
    epochs = [run_epoch(device, meter, Batches(device, 8, end=70.0), work=1.0)]
    device.host(500.0)  # validation
    epochs.append(run_epoch(device, meter, Batches(device, 8, end=70.0), work=1.0))

    # Steps 4 to 8 of the first epoch, 3 to 6 of the second, in which two were thrown away.
    assert pytest.approx([1.0] * 9, rel=0.02) == meter.step_seconds()
    assert pytest.approx(9.0, rel=0.02) == meter.window_seconds
    assert 14 == meter.total_steps
    assert 9 * SAMPLES == meter.window_samples
    assert [8, 6] == [batches for _, batches, _, _ in epochs]


def test_the_end_of_the_loaders_workers_belongs_to_no_step_and_no_epoch(device):
    """The wait for a loader that has no batch left is neither in the window nor in the epoch's seconds."""
    meter = make_meter(device, timed_steps=100, stop_when_timed=False)
    seconds, batches, samples, _ = run_epoch(device, meter, Batches(device, 10, wait=0.0, end=70.0))

    # Ten steps, and half a second in which the marks were prepared.
    assert pytest.approx(10.5, rel=0.01) == seconds
    assert (10, 10 * SAMPLES) == (batches, samples)
    assert pytest.approx(7.0, rel=0.01) == meter.window_seconds


def test_a_loader_without_a_length_is_closed_when_it_ends(device):
    """Where nobody can know that a step is the last one, the window closes at the loader's end."""
    meter = make_meter(device, timed_steps=100, stop_when_timed=False)
    seconds, *_ = run_epoch(device, meter, iter(Batches(device, 10, wait=0.0, end=70.0)))

    assert pytest.approx(73.0, rel=0.01) == seconds
    assert pytest.approx(70.0, rel=0.01) == meter.window_seconds


def test_a_loader_that_delivers_more_than_its_length_is_counted(device):
    """Epoch facts are what was delivered, and no window stays open behind an epoch."""

    class Longer(Batches):
        def __len__(self) -> int:
            return 5

    meter = make_meter(device, timed_steps=100, stop_when_timed=False)
    _, batches, samples, _ = run_epoch(device, meter, Longer(device, 9))

    assert (9, 9 * SAMPLES) == (batches, samples)
    before = meter.window_seconds
    device.host(1000.0)
    meter.start_epoch()
    meter.end_epoch()
    assert before == meter.window_seconds


def test_an_epoch_is_timed_from_before_its_first_batch_to_its_last_step(device):
    """The start of the loader's workers is part of an epoch; what happens between epochs is not."""
    meter = make_meter(device, warmup_steps=1000)
    run_epoch(device, meter, Batches(device, 4))
    device.host(300.0)
    seconds, batches, samples, first_batch = run_epoch(device, meter, Batches(device, 4, wait=2.5), work=1.0)

    # Four waits and the last step's work: the others were done while the host waited.
    assert pytest.approx(11.0, rel=0.01) == seconds
    assert (4, 16) == (batches, samples)
    assert pytest.approx(2.5) == first_batch


def test_an_epoch_that_a_window_ends_counts_what_was_delivered(device):
    """Training stops with the window; the epoch holds the steps up to there."""
    meter = make_meter(device)
    _, batches, samples, _ = run_epoch(device, meter, Batches(device, 100))

    assert (8, 8 * SAMPLES) == (batches, samples)


def test_training_goes_on_where_the_plan_wants_whole_epochs(device):
    """With `stop_when_timed` off the window closes after its steps and is never opened again."""
    meter = make_meter(device, stop_when_timed=False)
    for _ in range(2):
        run_epoch(device, meter, Batches(device, 20))

    assert 40 == meter.total_steps
    assert 5 == meter.window_steps == len(meter.step_seconds())
    assert pytest.approx(5.0, rel=0.02) == meter.window_seconds


def test_an_epoch_without_a_batch_has_none(device):
    """An empty loader is an epoch of no steps, not an error of the meter."""
    meter = make_meter(device)

    assert (0.0, 0, 0, 0.0) == run_epoch(device, meter, Batches(device, 0))


# --- what else is noted


def test_the_first_step_is_timed_by_itself(device):
    """From before the loader is asked to the end of the first step's work on the device."""
    meter = make_meter(device)
    run_epoch(device, meter, Batches(device, 5, wait=2.0), work=3.0)

    assert pytest.approx(5.0, rel=0.01) == meter.first_step_seconds


def test_waits_count_inside_the_window_only(device):
    """The host's time in the loader is taken for the timed steps, not for warm-up and not behind the window."""
    meter = make_meter(device, stop_when_timed=False)
    run_epoch(device, meter, Batches(device, 20, wait=0.25))

    assert pytest.approx(5 * 0.25) == meter.wait_seconds


def test_losses_of_all_steps_are_kept_on_their_device(device):
    """Warm-up's losses are there too, detached, and nothing was read from them."""
    meter = make_meter(device, timed_steps=2)
    meter.start_epoch()
    parameter = torch.ones((), requires_grad=True)
    for step in range(5):
        meter.step(parameter * step, SAMPLES)

    assert [0.0, 1.0, 2.0, 3.0, 4.0] == [loss.item() for loss in meter.losses]
    assert not any(loss.requires_grad for loss in meter.losses)


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(0, 6), st.integers(1, 25), st.integers(7, 15), st.booleans())
def test_a_window_always_ends_with_the_steps_that_were_asked_for(warmup, rewarm, timed, epoch_steps, stop):
    """Whatever the lengths of warm-up, window and epoch: enough steps, summing to the window, none from the warm-up."""
    device = FakeDevice()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perf.training.meter.time", device.as_time)
        meter = make_meter(
            device, warmup_steps=warmup, rewarm_steps=rewarm, timed_steps=timed, stop_when_timed=stop
        )
        epochs = 0
        while not meter.finished:
            run_epoch(device, meter, Batches(device, epoch_steps, end=9.0))
            epochs += 1
            assert epochs < 60

    assert timed == meter.window_steps == len(meter.step_seconds())
    assert timed * SAMPLES == meter.window_samples
    assert meter.total_steps >= warmup + timed
    assert pytest.approx(sum(meter.step_seconds())) == meter.window_seconds


# --- loaders


def test_a_watched_loader_delivers_what_the_loader_does(device):
    """Wrapping changes nothing about batches or their order, and it can be iterated again."""
    meter = make_meter(device)
    watched = Watched(Batches(device, 6), meter)

    assert list(range(6)) == list(watched) == list(watched)


def test_an_error_of_the_loader_comes_through(device):
    """A worker that died is the training loop's error, with its own traceback."""

    def broken():
        yield 1
        raise RuntimeError("worker 0 died")

    with pytest.raises(RuntimeError, match="worker 0 died"):
        list(Watched(broken(), make_meter(device)))


@given(st.lists(st.floats(1e-6, 10.0), max_size=30))
def test_halves_are_the_medians_of_both_halves(steps):
    """Drift within a window shows as two different numbers; fewer than two steps have no halves."""
    middle = len(steps) // 2
    expected = (
        [] if len(steps) < 2 else [statistics.median(steps[:middle]), statistics.median(steps[middle:])]
    )

    assert expected == halves(steps)


@pytest.mark.parametrize("min_seconds", [0.0, 3.0])
def test_a_limit_below_the_least_time_is_refused(device, min_seconds):
    """A window can't be both longer and shorter, and without a least time nobody judges a step's time."""
    with pytest.raises(ValueError, match="at most 2.0 s needs a least time below that"):
        make_meter(device, warmup_steps=10, min_seconds=min_seconds, max_seconds=2.0)
