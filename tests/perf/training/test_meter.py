"""Which steps are timed, for how long, and what lies outside the window."""

from __future__ import annotations

import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.training.looks import LOOKS
from perf.training.meter import halves
from perf.training.watched import Watched
from tests.perf.training.helpers import FakeDevice
from tests.perf.training.meters import SAMPLES, TARGET, Batches, make_meter, run_epoch

# --- the window


def test_warm_up_is_not_timed(device):
    """The window begins behind the warm-up, however slow that was, and holds the steps that were asked for."""
    meter = make_meter(device)
    meter.start_epoch()
    for step in range(8):
        device.queue(50.0 if step < 3 else 1.0)
        assert (step == 7) is meter.step(None, TARGET)
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
    assert meter.step(None, TARGET) is False
    device.queue(2.0)
    assert meter.step(None, TARGET) is True

    assert pytest.approx([1.0, 2.0]) == meter.step_seconds()


def test_nothing_waits_for_the_device_inside_the_window(device):
    """Between the window's edges the host runs ahead of the device: no synchronize of the meter's."""
    meter = make_meter(device)
    meter.start_epoch()
    for _ in range(3):
        device.queue(1.0)
        meter.step(None, TARGET)
    before, start = device.synchronized, device.now
    for _ in range(4):
        device.queue(1.0)
        device.host(0.001)
        meter.step(None, TARGET)

    assert before == device.synchronized
    assert pytest.approx(0.004) == device.now - start


def test_steps_sum_to_the_window_on_a_device_with_a_queue(device):
    """Marks behind queued work and the host's clock between synchronizes agree."""
    meter = make_meter(device, timed_steps=20)
    run_epoch(device, meter, Batches(device, 40), work=0.3)

    assert pytest.approx(sum(meter.step_seconds()), rel=0.01) == meter.window_seconds


def test_without_warm_up_the_first_step_still_lies_outside(device):
    """The first step holds lazy initialization, so a window never begins before it."""
    meter = make_meter(device, warmup_steps=0, timed_steps=2)
    run_epoch(device, meter, Batches(device, 9))

    assert (2, 3) == (meter.window_steps, meter.total_steps)


def test_the_edges_of_the_window_are_announced(device):
    """Whoever reads counters at the edges is called once at each, never inside."""
    meter = make_meter(device, stop_when_timed=False)
    edges = []
    meter.on_window = lambda opens: edges.append((opens, meter.total_steps))
    run_epoch(device, meter, Batches(device, 12))

    assert [(True, 3), (False, 8)] == edges


@pytest.mark.parametrize(
    ("timed", "expected"),
    [
        (5, {*range(5)}),
        (2 * LOOKS - 1, {*range(199)}),
        (2 * LOOKS, {*range(20), *range(20, 200, 2), *range(180, 200)}),
        (1000, {*range(100), *range(100, 1000, 10), *range(900, 1000)}),
    ],
)
def test_a_long_window_looks_at_some_of_its_steps(device, timed, expected):
    """Of up to 199 steps at each; else at one in n between its first tenth and its last: each costs microseconds."""
    meter = make_meter(device, timed_steps=timed)
    run_epoch(device, meter, Batches(device, 2000), loss=torch.ones(()))

    assert [0, 1, 2, *(3 + step for step in sorted(expected))] == meter.loss_steps
    assert len(meter.losses) == len(meter.loss_steps)
    assert (timed, timed * SAMPLES) == (meter.window_steps, meter.window_samples)


def test_a_window_in_pieces_looks_where_a_whole_one_does(device):
    """First and last tenth are the window's own, whatever the epochs that it is interrupted by."""
    meter = make_meter(device, timed_steps=1000)
    while not meter.finished:
        run_epoch(device, meter, Batches(device, 94), loss=torch.ones(()))

    # Three steps before the window, and one in each of ten epochs behind which it opens anew.
    outside = [0, 1, 2, *range(94, 94 * 11, 94)]
    inside = [step for step in range(meter.total_steps) if step not in outside]
    looks = {*range(100), *range(100, 1000, 10), *range(900, 1000)}
    assert 1000 == len(inside)
    assert sorted([*outside, *(inside[place] for place in looks)]) == meter.loss_steps


def test_a_window_that_goes_on_looks_as_seldom_as_its_length_asks_for(device):
    """Steps that turn out five times as fast as the warm-up's make a window of as many more."""
    meter = make_meter(device, warmup_steps=4, timed_steps=100, min_seconds=100.0, edges=False)
    meter.start_epoch()
    steps = 0
    done = False
    while not done:
        device.queue(1.0 if steps < 4 else 0.1)
        done = meter.step(torch.ones(()), TARGET)
        steps += 1

    assert meter.window_steps > 1000
    # All of the first hundred and ten, and one in ten or eleven of the rest.
    assert len(meter.losses) < 4 + 110 + 110


def test_batches_of_another_size_are_counted_as_they_are(device):
    """A window whose every step is looked at has the samples that its batches had."""
    meter = make_meter(device, timed_steps=4)
    meter.start_epoch()
    for size in (4, 4, 4, 4, 3, 6, 4):
        meter.step(None, torch.zeros(size))

    assert (17, 29) == (meter.window_samples, meter.end_epoch()[2])


def test_batches_of_another_size_end_a_window_that_looks_at_some(device):
    """Where most batches are not looked at, one of another size says that the samples are not known."""
    meter = make_meter(device, timed_steps=3 * LOOKS, edges=False)
    meter.start_epoch()
    for size in (4, 4, 4, 4, 4, 4):
        meter.step(None, torch.zeros(size))

    with pytest.raises(
        RuntimeError, match="3 samples stands among those of 4 inside an epoch, and one in 3 is looked at"
    ):
        meter.step(None, torch.zeros(3))


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


def test_a_partial_batch_is_in_no_window(device):
    """It trains, and counts in its epoch; cuDNN's autotuning may search for seconds for its shape."""
    meter = make_meter(device, timed_steps=9)
    meter.start_epoch()
    for _ in range(2):
        for target in Watched(Batches(device, 8, wait=0.01, last=1), meter, partial=True):
            device.queue(1.0 if len(target) == SAMPLES else 50.0)
            if meter.step(None, target):
                break

    # Steps 4 to 7 of the first epoch; of the second five behind one that opens the window anew.
    assert pytest.approx([1.0] * 9, rel=0.02) == meter.step_seconds()
    assert pytest.approx(9.0, rel=0.02) == meter.window_seconds
    assert (9, 9 * SAMPLES) == (meter.window_steps, meter.window_samples)
    assert pytest.approx(9 * 0.01) == meter.wait_seconds
    assert 14 == meter.total_steps


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
        meter.step(parameter * step, TARGET)

    assert [0.0, 1.0, 2.0, 3.0, 4.0] == [loss.item() for loss in meter.losses]
    assert not any(loss.requires_grad for loss in meter.losses)


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(0, 6), st.integers(1, 25), st.integers(7, 15), st.booleans())
def test_a_window_always_ends_with_the_steps_that_were_asked_for(warmup, rewarm, timed, epoch_steps, stop):
    """Whatever the lengths of warm-up, window and epoch: enough steps, summing to the window, none from the warm-up."""
    device = FakeDevice()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("meter", "watched"):
            patch.setattr(f"perf.training.{module}.time", device.as_time)
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


# --- halves


@given(st.lists(st.floats(1e-6, 10.0), max_size=30))
def test_halves_are_the_medians_of_both_halves(steps):
    """Drift within a window shows as two different numbers; fewer than two steps have no halves."""
    middle = len(steps) // 2
    expected = (
        [] if len(steps) < 2 else [statistics.median(steps[:middle]), statistics.median(steps[middle:])]
    )

    assert expected == halves(steps)
