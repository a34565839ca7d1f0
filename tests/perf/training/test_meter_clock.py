"""What a meter tells its clock, what it does where that calls a stretch wrong, and whose points its steps are of."""

from __future__ import annotations

import pytest
import torch

from tests.perf.training.meters import SAMPLES, Batches, make_meter, run_epoch


def test_a_clock_is_told_of_the_steps_before_the_window(device):
    """How far devices are behind as it opens, and how long a step takes; once, however often it opens."""
    meter = make_meter(device, warmup_steps=8, timed_steps=6)
    run_epoch(device, meter, Batches(device, 12, wait=0.0), work=0.5)
    run_epoch(device, meter, Batches(device, 12, wait=0.0), work=0.5)

    # Four steps of 1 ms by the host and half a second by the device lie behind the half of the warm-up.
    assert [(pytest.approx(4 * 0.499), pytest.approx(0.5, rel=0.01))] == device.asked
    # Of each stretch how far they were behind at its end, and its own step.
    assert [(pytest.approx(lag, abs=0.02), pytest.approx(0.5, rel=0.01)) for lag in (2.0, 1.0)] == device.ends
    assert meter.drain_seconds == device.ends[-1][0]


def test_a_stretch_without_a_step_was_timed_by_nothing(device):
    """A window that opens behind an epoch's last step has none of it."""
    meter = make_meter(device, warmup_steps=8, timed_steps=5)
    device.names = ["events"]
    for _ in range(2):
        run_epoch(device, meter, Batches(device, 8))

    assert "events" == meter.clock
    assert [] == device.names


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["host", "host"], "host"), (["events", "events"], "events"), (["host", "events"], "mixed")],
)
def test_a_window_says_what_timed_it(device, names, expected):
    """Where a later stretch has another clock than an earlier one, steps are of both; without a window of none."""
    meter = make_meter(device, timed_steps=9)
    assert meter.clock is None
    run_epoch(device, meter, Batches(device, 8))
    run_epoch(device, meter, Batches(device, 8))
    device.names = names

    assert expected == meter.clock


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_window_that_is_wrong_is_dropped_and_taken_anew(device, wrong):
    """Its steps were trained, and are no part of the window; who has noted its edges is told."""
    meter = make_meter(device, timed_steps=5)
    device.wrong = wrong
    told = []
    meter.on_window = lambda opens: told.append(("opens" if opens else "closes", meter.total_steps))
    meter.on_dropped = lambda: told.append(("dropped", meter.total_steps))
    run_epoch(device, meter, Batches(device, 40), loss=torch.ones(()))

    assert pytest.approx([1.0] * 5, rel=0.02) == meter.step_seconds()
    assert pytest.approx(5.0, rel=0.02) == meter.window_seconds
    assert (5, 5 * SAMPLES, 3 + 5 * (1 + wrong)) == (
        meter.window_steps,
        meter.window_samples,
        meter.total_steps,
    )
    expected = [("opens", 3)]
    for turn in range(wrong):
        expected += [("dropped", 8 + 5 * turn), ("opens", 8 + 5 * turn)]
    assert [*expected, ("closes", meter.total_steps)] == told
    assert pytest.approx(0.05) == meter.wait_seconds
    assert [*range(meter.total_steps)] == meter.loss_steps


def test_a_piece_of_a_window_that_is_wrong_is_taken_in_the_next_epoch(device):
    """What an epoch's end has interrupted lacks all of its steps again."""
    meter = make_meter(device, timed_steps=9)
    device.wrong = 1
    run_epoch(device, meter, Batches(device, 8))
    assert (0, 8) == (meter.window_steps, meter.total_steps)
    run_epoch(device, meter, Batches(device, 40))

    assert (9, 9, 9 * SAMPLES) == (meter.window_steps, len(meter.step_seconds()), meter.window_samples)
    assert meter.finished
