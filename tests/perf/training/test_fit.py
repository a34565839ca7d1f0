"""The largest batch that fits, by trying."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from perf.training import fit
from perf.training.fit import OutOfMemory, largest, main, peak_of


@given(st.integers(0, 5000), st.integers(1, 256))
def test_the_largest_batch_is_found(limit, first):
    """Whatever the first try: what is found fits, and what is a little more than it does not."""
    found, tried = largest(lambda batch: 100 * batch if batch <= limit else None, first)

    assert found <= limit
    assert limit <= found + max(1, 0.05 * found)
    assert all(one["fits"] == (one["batch"] <= limit) for one in tried)
    assert all(one["peak_bytes"] == (100 * one["batch"] if one["fits"] else None) for one in tried)


def test_a_search_without_an_end_ends():
    """A card that says yes to everything is asked 20 times."""
    assert 20 == len(largest(lambda batch: 1, 1)[1])


def test_a_card_without_memory_left_is_reported_as_such(monkeypatch):
    """torch's error becomes one of its own kind, and no other error does."""

    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB")

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch, "randn", full)
    with pytest.raises(OutOfMemory, match="20 MiB"):
        peak_of("unet3d_tiny", 4, torch.device("cpu"))


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    """Exit status 1 and a sentence."""
    monkeypatch.setattr(fit.torch.cuda, "is_available", lambda: False)

    assert 1 == main([])
    assert "no GPU here" in capsys.readouterr().err
