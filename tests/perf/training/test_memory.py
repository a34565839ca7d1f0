"""Peaks of a launch and of its window, and retries inside it, by the allocator's counters."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from perf.training.memory import DeviceMemory

GPU = torch.device("cuda", 0)


class Allocator:
    """Counts as torch's does: a peak is the largest size since its last reset."""

    def __init__(self) -> None:
        self.initialized = True
        self.retries = 0
        self.peak = 0

    def has(self, size: int) -> None:
        """Allocate so many bytes in all, and free them."""
        self.peak = max(self.peak, size)

    def reset(self, device: torch.device) -> None:
        assert self.initialized, "torch raises here"
        self.peak = 0

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, function in (
            ("is_initialized", lambda: self.initialized),
            ("memory_stats", lambda device: {"num_alloc_retries": self.retries}),
            ("max_memory_allocated", lambda device: self.peak),
            ("max_memory_reserved", lambda device: 2 * self.peak),
            ("reset_peak_memory_stats", self.reset),
        ):
            monkeypatch.setattr(torch.cuda, name, function)


@pytest.fixture
def allocator(monkeypatch):
    made = Allocator()
    made.put_in(monkeypatch)
    return made


def test_a_windows_peak_leaves_out_what_came_before(allocator):
    """First steps take more; the launch's own peak has them all the same."""
    memory = DeviceMemory([GPU])
    allocator.has(900)
    memory.window(True)
    allocator.has(700)
    memory.window(False)

    assert {"cuda:0": 700} == memory.window_peak
    assert ({"cuda:0": 900}, {"cuda:0": 1800}) == memory.peaks()


def test_what_comes_behind_the_window_is_the_launchs(allocator):
    """Validation may take more than training."""
    memory = DeviceMemory([GPU])
    memory.window(True)
    allocator.has(700)
    memory.window(False)
    allocator.has(800)

    assert {"cuda:0": 700} == memory.window_peak
    assert {"cuda:0": 800} == memory.peaks()[0]


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=5), st.integers(0, 99)
)
def test_stretches_of_a_window_have_the_peak_of_the_largest(stretches, behind):
    """An interrupted window is one window; what lies between its stretches is outside it, and in the launch."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        allocator = Allocator()
        allocator.put_in(monkeypatch)
        memory = DeviceMemory([GPU])
        for before, inside in stretches:
            allocator.has(before)
            memory.window(True)
            allocator.has(inside)
            memory.window(False)
        allocator.has(behind)
        peak, reserved = memory.peaks()

    sizes = [behind, *(size for stretch in stretches for size in stretch)]
    assert {"cuda:0": max(inside for _, inside in stretches)} == memory.window_peak
    assert ({"cuda:0": max(sizes)}, {"cuda:0": 2 * max(sizes)}) == (peak, reserved)


def test_retries_of_the_allocator_are_those_inside_the_window(allocator):
    """Readings at the edges are subtracted, and stretches of an interrupted window add up."""
    memory = DeviceMemory([GPU])
    for opens, now in ((True, 3), (False, 5), (True, 9), (False, 10)):
        allocator.retries = now
        memory.window(opens)

    assert {"cuda:0": 3} == memory.retries


def test_a_gpu_that_was_not_touched_has_nothing_to_reset(allocator):
    """torch can't reset counters before CUDA is initialized."""
    allocator.initialized = False
    memory = DeviceMemory([GPU])
    memory.window(True)
    memory.window(False)

    assert {"cuda:0": 0} == memory.window_peak


def test_a_cpu_has_no_counters():
    """Nothing is read, so nothing is said; torch without CUDA has none of this."""
    memory = DeviceMemory([])
    memory.window(True)
    memory.window(False)

    assert ({}, {}, {}, {}) == (memory.window_peak, memory.retries, *memory.peaks())
