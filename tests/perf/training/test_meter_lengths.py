"""How many steps a warm-up and a window have, by what steps take, and how ranks agree on that."""

from __future__ import annotations

import pytest

from perf.training.watched import Watched
from tests.perf.training.helpers import FakeDevice
from tests.perf.training.meters import SAMPLES, TARGET, Batches, make_meter, run_epoch

ON_A_GPU = {
    "warmup_steps": 32,
    "timed_steps": 100,
    "min_seconds": 2.0,
    "max_seconds": 5.0,
    "warmup_seconds": 0.4,
}
"""Sizes like those of a profile's window on a GPU."""


def test_the_window_is_as_long_as_its_least_time(device):
    """The warm-up's second half tells how many steps fill `min_seconds`; a slow first step does not count."""
    meter = make_meter(device, warmup_steps=10, timed_steps=5, min_seconds=20.0)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(0.5 if meter.total_steps else 30.0)
        stopped = meter.step(None, TARGET)

    assert pytest.approx(22.0) == meter.window_seconds
    assert 44 == meter.window_steps


def test_a_window_goes_on_where_its_steps_were_faster_than_the_warm_up(device):
    """What the warm-up's pace would make too short is extended until it lasts its least time."""
    meter = make_meter(device, warmup_steps=10, timed_steps=5, min_seconds=20.0)
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(1.0 if meter.total_steps < 10 else 0.1)
        stopped = meter.step(None, TARGET)

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
        stopped = meter.step(None, TARGET)

    assert steps == meter.window_steps == len(meter.step_seconds())


LIMITED = {"warmup_steps": 10, "timed_steps": 100, "min_seconds": 2.0, "max_seconds": 60.0}
"""Of steps of 2 s a window has 50."""


@pytest.mark.parametrize(
    ("epoch", "rewarm", "taken"),
    # Behind the warm-up 45, 44, 49 and 50 steps are left: six lacking are too many.
    [(55, 10, 45), (54, 10, 50), (59, 10, 49), (59, 2, 49), (59, 1, 50), (59, 0, 50), (60, 10, 50)],
)
def test_a_window_that_lacks_little_at_an_epochs_end_is_left_at_that(device, epoch, rewarm, taken):
    """One step in ten may lack, where the next epoch's first steps, which are thrown away, would be more."""
    meter = make_meter(device, rewarm_steps=rewarm, **LIMITED)
    while not meter.finished:
        run_epoch(device, meter, Batches(device, epoch), work=2.0)

    assert taken == meter.window_steps == len(meter.step_seconds())
    assert pytest.approx(2.0 * taken, rel=0.01) == meter.window_seconds
    assert (meter.total_steps <= epoch) is (taken < 50 or epoch == 60)


def test_a_partial_batch_still_trains_behind_a_window_that_is_left_at_that(device):
    """The epoch goes to its end."""
    meter = make_meter(device, rewarm_steps=10, **LIMITED)
    meter.start_epoch()
    for target in Watched(Batches(device, 60, last=1), meter, partial=True):
        device.queue(2.0)
        meter.step(None, target)

    assert (True, 49, 60) == (meter.finished, meter.window_steps, meter.total_steps)
    assert (60, 59 * SAMPLES + 1) == meter.end_epoch()[1:3]


def test_a_window_that_needs_all_of_its_steps_takes_them(device):
    """Without a limit in seconds none may lack: a share of slow steps is of a number of steps."""
    meter = make_meter(device, warmup_steps=10, rewarm_steps=10, timed_steps=50, min_seconds=2.0)
    while not meter.finished:
        run_epoch(device, meter, Batches(device, 59), work=2.0)

    assert 50 == meter.window_steps


def test_no_rank_leaves_it_at_that_while_another_lacks_time(device):
    """Ranks lack as many steps, and not as many seconds: each asks the others, who have not their least time yet."""
    told = []

    def agree(number: int) -> int:
        told.append(number)
        # The first answer is how many steps a window has; then one rank lacks time.
        return {1: number, 2: 1}.get(len(told), 0)

    meter = make_meter(device, rewarm_steps=10, agree=agree, **LIMITED)
    while not meter.finished:
        run_epoch(device, meter, Batches(device, 59), work=2.0)

    assert [50, 0, 0] == told
    assert 50 == meter.window_steps


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
        stopped = meter.step(None, TARGET)

    assert (steps, steps + 5) == (meter.warmup_steps, meter.total_steps)


def test_a_shortened_warm_up_is_no_pace_for_a_graph_before_it_is_captured(device):
    """Eager steps and the capture take longer than what is replayed: the window has all its steps at once."""
    meter = make_meter(device, captured=True, **ON_A_GPU)
    meter.start_epoch()
    stopped = False
    while not stopped:
        step = meter.total_steps + 1
        device.queue(0.06 if step < 12 else 0.5 if step == 12 else 0.03)
        stopped = meter.step(None, TARGET)

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
        stopped = meter.step(None, TARGET)

    assert (max(10, round(0.4 / seconds)), steps) == (meter.warmup_steps, meter.window_steps)
    assert [steps + 1] == device.prepared


def test_ranks_agree_on_the_steps_of_their_warm_up(device):
    """The slowest rank would take fewest, and all take what the fastest one wants: they open their windows together."""
    meter = make_meter(device, warmup_steps=32, warmup_seconds=0.4, agree=lambda steps: max(steps, 28))
    meter.start_epoch()
    stopped = False
    while not stopped:
        device.queue(0.08)
        stopped = meter.step(None, TARGET)

    assert 28 == meter.warmup_steps


@pytest.mark.parametrize("warmup_steps", [0, 1])
def test_a_least_time_needs_a_warm_up_to_judge_by(device, warmup_steps):
    """Without two steps of warm-up a step's time is not known, and the window would never end."""
    with pytest.raises(ValueError, match="warm-up steps don't tell how many fill 2.0 s"):
        make_meter(device, warmup_steps=warmup_steps, min_seconds=2.0)


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
        for module in ("meter", "lengths"):
            monkeypatch.setattr(f"perf.training.{module}.time", fake.as_time)
        probe = make_meter(fake, warmup_steps=4, min_seconds=10.0, agree=lambda n: wishes.append(n) or n)
        run_epoch(fake, probe, Batches(fake, 5, wait=0.0), work=work)
    for fake, work in ((FakeDevice(), 1.0), (FakeDevice(), 0.1)):
        for module in ("meter", "lengths"):
            monkeypatch.setattr(f"perf.training.{module}.time", fake.as_time)
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
        done = meter.step(None, TARGET)

    assert meter.window_seconds >= 10.0
    assert [0.5] * meter.window_steps == pytest.approx(meter.step_seconds())
    assert meter.window_steps * SAMPLES == meter.window_samples
    assert meter.window_steps < 40


@pytest.mark.parametrize("min_seconds", [0.0, 3.0])
def test_a_limit_below_the_least_time_is_refused(device, min_seconds):
    """A window can't be both longer and shorter, and without a least time nobody judges a step's time."""
    with pytest.raises(ValueError, match="at most 2.0 s needs a least time below that"):
        make_meter(device, warmup_steps=10, min_seconds=min_seconds, max_seconds=2.0)
