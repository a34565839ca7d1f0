"""A record's settings say which optimizations were in force; an old record says none."""

from __future__ import annotations

import pytest

from perf.suite.settings import optimizations_in_force

NOTHING = {
    "channels_last": {"weights": False, "activations": False},
    "non_blocking": {"in_force": False, "pinned": None},
    "optimizer_flags": {"lr": 1.0, "fused": None},
    "compiled": {"wrapped": False, "frames": 0},
    "cuda_graph": None,
    "cudnn_benchmark": False,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"channels_last": {"weights": True}}, {"channels_last"}),
        ({"channels_last": {"weights": None}}, set()),
        ({"non_blocking": {"in_force": True}}, {"non_blocking"}),
        ({"non_blocking": {"asked": True}}, {"non_blocking"}),
        ({"optimizer_flags": {"fused": True}}, {"fused"}),
        ({"compiled": {"wrapped": True, "frames": 2}}, {"compile"}),
        ({"compiled": {"wrapped": True, "frames": 0}}, set()),
        ({"cuda_graph": {"captures": 1, "replays": 88}}, {"cuda_graph"}),
        ({"cuda_graph": {"captures": 0, "replays": 0}}, set()),
        ({"cudnn_benchmark": True}, {"autotune"}),
    ],
)
def test_what_was_read_back_names_the_optimization(changes, expected):
    """Each optimization shows where the worker read it back."""
    assert expected == optimizations_in_force({**NOTHING, **changes})


def test_an_old_record_shows_none():
    """Before there were optimizations `compiled` was a word, and the rest was missing."""
    assert set() == optimizations_in_force({"compiled": False, "optimizer_flags": {"lr": 1.0}})
