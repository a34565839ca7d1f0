"""How often the loss falls in a short launch is counted over seeds, and one that does not fall is not hidden."""

from __future__ import annotations

import json

import pytest

from perf.training import learning
from tests.perf.training.helpers import TinyWorkload


@pytest.fixture
def tiny(monkeypatch):
    """Let the tiny workload of these tests be the one that is trained."""
    monkeypatch.setattr(learning, "load_workload", lambda name: TinyWorkload())


@pytest.mark.parametrize(
    ("losses", "expected"), [([4.0, 3.0, 2.0], 0.5), ([1.0] * 10 + [2.0] * 10, 2.0), ([3.0], 1.0)]
)
def test_the_last_tenth_is_held_against_the_first(losses, expected):
    """At least one loss counts at either end."""
    assert expected == learning.last_over_first(losses)


def test_every_seed_is_counted(tiny, capsys):
    """Where the loss falls for all seeds the status is 0, and the line says for how many."""
    assert 0 == learning.main(["--seeds", "3", "--steps", "20", "--batch", "8"])
    found = json.loads(capsys.readouterr().out)
    assert (3, 3, 20, 8) == (found["seeds"], found["fell"], found["steps"], found["batch"])
    assert 0 < found["largest"] < 1


def test_a_loss_that_does_not_fall_is_a_failure(tiny, monkeypatch, capsys):
    """One seed is enough for status 1."""
    monkeypatch.setattr(learning, "losses_of", lambda *how: ([1.0, 2.0], 0.01))

    assert 1 == learning.main(["--seeds", "2"])
    assert 0 == json.loads(capsys.readouterr().out)["fell"]


def test_an_epoch_that_is_too_short_is_named(tiny):
    """180 samples give 23 batches of 8, not 44."""
    with pytest.raises(ValueError, match="has 23 steps, 44 were asked for"):
        learning.main(["--seeds", "1"])


def test_nothing_to_train_is_refused(capsys):
    """No seed, no answer."""
    with pytest.raises(SystemExit):
        learning.main(["--seeds", "0"])
    assert "at least 1 sample, 1 step and 1 seed" in capsys.readouterr().err


def test_a_network_that_is_none_is_refused(capsys):
    """One line that says which there are, before anything is trained."""
    with pytest.raises(SystemExit, match="2"):
        learning.main(["--workload", "nope"])
    assert "invalid choice: 'nope'" in capsys.readouterr().err
