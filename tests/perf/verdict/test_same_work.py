"""Whether two stacks did the same work."""

from __future__ import annotations

import pytest
from launch_records import record

from perf.verdict.same_work import less_work, losses_apart


def test_equal_launches_did_the_same_work():
    """Nothing is said where nothing differs, and partial batches of an epoch's end are no difference."""
    assert () == less_work([record()], [record()])
    assert () == less_work([record(samples=640)], [record(samples=630)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parameters": 7}, "7 parameters with the new stack"),
        ({"samples": 320}, "32 samples a step"),
        ({"seed": 1}, "different seeds"),
        ({"effective": [{"first_batch": {"mean": 2.0}}]}, "train on other batches"),
        ({"loss_last": 2.0}, "the loss falls in launch"),
    ],
)
def test_less_work_is_named(changes, words):
    """Each of these may take as little time as it likes."""
    (reason,) = less_work([record()], [record(**changes)])
    assert words in reason


def test_losses_may_differ_by_rounding_alone():
    """A tenth of the first loss is far more than rounding."""
    assert () == losses_apart([record()], [record(loss_last=1.15)], parity=0.1)
    (reason,) = losses_apart([record()], [record(loss_last=1.25)], parity=0.1)
    assert "loss_last is 1.25 with the new stack and 1 with the old one" == reason
    assert () == losses_apart([record(loss_last=None)], [record()], parity=0.1)
