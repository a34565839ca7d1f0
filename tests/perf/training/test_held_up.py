"""A window of a host that holds its device up, or doesn't, or not always: real meter and clock on a made-up device."""

from __future__ import annotations

import random
import statistics
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from perf.training import clocks, held_up, lengths, meter
from perf.training.held_up import EitherClock
from perf.training.meter import Meter
from tests.perf.training.helpers import FakeDevice

TARGET = torch.zeros(4)
MS = 0.001


class Queue(FakeDevice):
    """A device whose events are in its queue, and whose clock may be a faster one.

    To record an event takes the host `recording` seconds, and to hear that the device is idle `hearing`.
    """

    def __init__(self, drift: float, recording: float, hearing: float) -> None:
        super().__init__()
        self.drift, self.recording, self.hearing = drift, recording, hearing

    def synchronize(self) -> None:
        super().synchronize()
        self.host(self.hearing)

    def event(self, enable_timing: bool = False) -> SimpleNamespace:
        """Return what stands in for torch's event."""
        event = SimpleNamespace(at=0.0)

        def record(stream: object) -> None:
            self.host(self.recording)
            event.at = max(self.idle_at, self.now)

        event.record = record
        event.elapsed_time = lambda other: 1000.0 * (1.0 + self.drift) * (other.at - event.at)
        return event


def trained(host, device_seconds, tail=0.0, drift=0.0, recording=0.0, hearing=0.0):
    """Train until the window is full, of steps that a host queues in `host(n)` seconds and a device does in others.

    `tail` is what the device needs behind the last of a step, at least; `drift` by how much its clock is the faster
    one, `recording` and `hearing` what events and a synchronize cost. Returns the meter, the true seconds of each step
    of its window by the device, and what the meter says of them.
    """
    device, done = Queue(drift, recording, hearing), []
    with pytest.MonkeyPatch.context() as patch:
        for module in (clocks, held_up, lengths, meter):
            patch.setattr(module, "time", device.as_time)
        patch.setattr(torch.cuda, "Event", device.event)
        patch.setattr(torch.cuda, "current_stream", lambda device: "stream")
        patch.setattr(torch.cuda, "synchronize", lambda which: device.synchronize())
        for module in (clocks, held_up):
            patch.setattr(module, "native_record", lambda: lambda event, stream: event.record(stream))
        found = Meter(
            EitherClock(torch.device("cuda", 0)),
            warmup_steps=32,
            rewarm_steps=0,
            timed_steps=100,
            min_seconds=2.0,
            warmup_seconds=0.4,
            stop_when_timed=True,
        )
        found.start_epoch()
        ended = False
        while not ended:
            # The device begins a step as soon as the first of it is queued, and can't end before the last of it is.
            device.queue(device_seconds)
            device.host(host(len(done)))
            device.idle_at = max(device.idle_at, device.now + (tail(len(done)) if callable(tail) else tail))
            done.append(device.idle_at)
            ended = found.step(None, TARGET)
        seconds = found.step_seconds()
    first = len(done) - len(seconds)
    return (
        found,
        [after - before for before, after in zip(done[first - 1 :], done[first:], strict=False)],
        seconds,
    )


@pytest.mark.parametrize(
    ("host", "device", "clock", "windows"),
    [
        # The host needs longer, by a little or by much; the device does; so near that a warm-up can't tell.
        (2.0 * MS, 0.5 * MS, "host", 1),
        (2.0 * MS, 1.9 * MS, "host", 1),
        (0.5 * MS, 2.0 * MS, "events", 1),
        (1.9 * MS, 2.0 * MS, "events", 1),
        (1.99 * MS, 2.0 * MS, "events", 2),
        # Long steps have events in any case.
        (9.0 * MS, 1.0 * MS, "events", 1),
    ],
)
def test_whoever_is_slower_times_the_steps(host, device, clock, windows):
    """Steps are what they are on the device; a window in which it fell behind was taken anew."""
    found, true, seconds = trained(lambda step: host, device)

    assert clock == found.clock
    assert statistics.median(true) == pytest.approx(statistics.median(seconds), rel=1e-6)
    assert windows == round((found.total_steps - 32) / found.window_steps)


def test_a_device_that_has_something_left_at_each_steps_end_is_still_held_up():
    """The last kernels of a step are running when the host has queued them: as far as in hundreds of launches."""
    found, true, seconds = trained(lambda step: 2.0 * MS, 0.5 * MS, tail=0.09 * 2.0 * MS)
    assert ("host", found.window_steps + 32) == (found.clock, found.total_steps)
    assert statistics.median(true) == pytest.approx(statistics.median(seconds), rel=1e-6)

    found, _, _ = trained(lambda step: 2.0 * MS, 0.5 * MS, tail=0.11 * 2.0 * MS)
    assert "events" == found.clock


def test_a_host_that_ran_ahead_for_a_while_is_found_out():
    """It is faster than its device for a part of the window, and at its end, as before it, nothing is left to do."""
    found, true, seconds = trained(lambda step: (1.9 if 100 < step < 500 else 2.2) * MS, 2.0 * MS)

    assert "events" == found.clock
    assert found.total_steps > 2 * found.window_steps
    assert statistics.median(true) == pytest.approx(statistics.median(seconds), rel=1e-6)


def test_one_step_in_which_the_device_is_late_is_no_reason_to_begin_anew():
    """A device, too, is held up now and then, and has caught up in the steps behind."""
    late = range(32 + 20, 2000, 199)
    found, _, _ = trained(
        lambda step: 2.0 * MS, 0.5 * MS, tail=lambda step: 0.5 * MS if step in late else 0.0
    )

    assert ("host", found.window_steps + 32) == (found.clock, found.total_steps)


def test_a_device_that_is_late_when_its_window_closes_is_reason_enough():
    """What it has left to do there is what the host's clock has not seen."""
    plain, _, _ = trained(lambda step: 2.0 * MS, 0.5 * MS)
    found, _, _ = trained(
        lambda step: 2.0 * MS, 0.5 * MS, tail=lambda step: 0.5 * MS * (step == plain.total_steps - 1)
    )

    assert ("host", "events") == (plain.clock, found.clock)


@pytest.mark.parametrize(
    ("drift", "clock"), [(-150e-6, "host"), (150e-6, "host"), (-900e-6, "events"), (900e-6, "events")]
)
def test_clocks_that_drift_apart_are_no_reason_to_begin_anew_within_reason(drift, clock):
    """In 2 s, 150 millionths are 0.3 ms, more than a tenth of a step. More than clocks do is something else."""
    found, _, _ = trained(lambda step: 2.0 * MS, 0.5 * MS, drift=drift)

    assert clock == found.clock


@pytest.mark.parametrize(("recording", "hearing"), [(0.05, 0.0), (0.0, 0.15), (0.05, 0.15)])
def test_what_an_event_and_a_synchronize_cost_is_nothing_that_a_device_was_behind_by(recording, hearing):
    """Either is in what was noted at a window's beginning and at its end, or in neither."""
    found, _, _ = trained(lambda step: 2.0 * MS, 0.5 * MS, recording=recording * MS, hearing=hearing * MS)

    assert ("host", found.window_steps + 32) == (found.clock, found.total_steps)


def test_one_late_step_is_no_reason_in_a_stretch_of_an_epoch_either():
    """It has a few checks of the window's, and none to spare where it has fewer than five."""
    stretch = EitherClock.__new__(EitherClock)
    event = SimpleNamespace(record=lambda stream: None, elapsed_time=lambda other: 1000.0 * other.at, at=1.0)
    stretch._stream, stretch._points = "stream", [0.0]
    stretch._begin = stretch._end = event
    stretch.synchronize = lambda: None
    for checks, late, kept_up in ((4, 0, True), (4, 1, False), (6, 1, True), (6, 2, False), (40, 2, True)):
        stretch._checks = [(n, SimpleNamespace(at=0.5 + (n < late))) for n in range(checks)]
        stretch._checked_at = [0.5] * checks
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(held_up, "time", SimpleNamespace(perf_counter=lambda: 1.0))
            assert kept_up is stretch._kept_up(0.01)


@given(st.floats(0.2, 4.9), st.floats(0.2, 4.9), st.floats(0.0, 0.2), st.integers(2, 400))
def test_a_mean_is_never_wrong_and_a_median_not_where_a_pace_is_steady(host, device, swing, period):
    """Whatever a host and a device take, and however the host's pace swings between two."""

    def pace(step: int) -> float:
        return host * MS * (1.0 + (swing if step % period < period / 2 else -swing))

    found, true, seconds = trained(pace, device * MS)

    assert found.clock in ("host", "events")
    assert statistics.mean(true) == pytest.approx(statistics.mean(seconds), rel=1e-3)
    if swing == 0.0 or found.clock == "events":
        assert statistics.median(true) == pytest.approx(statistics.median(seconds), rel=1e-6)


@given(st.floats(0.9, 1.4), st.sampled_from([0.02, 0.05, 0.1]), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_a_median_is_next_to_right_however_near_host_and_device_are(ratio, spread, seed):
    """The host's steps spread by up to a tenth: a queue evens the device's out, and medians differ by up to 3 %."""
    drawn = random.Random(seed)
    _, true, seconds = trained(lambda step: 2.0 * MS * ratio * drawn.lognormvariate(0.0, spread), 2.0 * MS)
    apart = statistics.median(seconds) / statistics.median(true) - 1.0

    assert abs(apart) < (0.03 if ratio < 1.1 + spread else 0.01)
