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


def began(loader="native", **changes):
    """A launch whose first batch looked so."""
    batch = {"shape": [64, 1], "dtype": "float32", "mean": 0.5, "deviation": 1.0, "sample": "ab", **changes}
    return record(effective=[{"first_batch": batch, "loader": {"loader": loader}}])


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"mean": 0.5 + 1e-6, "deviation": 1.0 - 1e-6}, True),
        ({"mean": 0.501}, False),
        ({"deviation": 1.001}, False),
        ({"mean": None}, False),
        ({"sample": "cd"}, False),
        ({"shape": [32, 1]}, False),
        ({"dtype": "float16"}, False),
    ],
)
def test_a_batch_is_the_same_but_for_the_order_of_sums(changes, same):
    """Each torch sums in an order of its own; samples, shapes and types are the same to the last bit."""
    assert same is (not less_work([began()], [began(**changes)]))


def test_a_batch_made_on_the_device_is_rounded_by_it():
    """The digest of a sample that a device computed is that device's own."""
    assert () == less_work([began("resident")], [began("resident", sample="cd")])
    assert less_work([began("resident")], [began("resident", mean=0.6)])
