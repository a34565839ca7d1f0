from __future__ import annotations

import numpy as np
import pytest

from perf.verdict.noise import KINDS, slots


def test_slots_interleave_abba():
    """Both sides together take every slot in time once, in the order base new new base."""
    new, base = slots(4)
    assert [1, 2, 5, 6] == new.tolist()
    assert [0, 3, 4, 7] == base.tolist()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_sides_do_not_differ_and_seeds_repeat(kind):
    """Every noise draws two sides of 16 launches without a difference, and the same ones from the same seed."""
    new, base = kind.draw(np.random.default_rng(1), 400, 0.01)
    assert (400, 16) == new.shape == base.shape
    assert np.isfinite(new).all()
    assert abs(np.median(new) - np.median(base)) < 0.002
    again, _ = kind.draw(np.random.default_rng(1), 400, 0.01)
    assert (new == again).all()


def spread(name: str, sd: float) -> np.ndarray:
    """Return the launches of both sides of one kind of noise in order of time, shape (4000, 32)."""
    kind = next(kind for kind in KINDS if kind.name == name)
    new, base = kind.draw(np.random.default_rng(2), 4_000, sd)
    values = np.empty((4_000, 32))
    values[:, slots()[0]], values[:, slots()[1]] = new, base
    return values


def test_each_noise_is_what_it_says():
    """Spread, correlation, drift, two modes and disturbances are there, and as large as stated."""
    assert 0.01 == pytest.approx(spread("clean", 0.01).std(), rel=0.02)
    correlated = spread("autocorrelated", 0.01)
    assert 0.5 == pytest.approx(np.corrcoef(correlated[:, 0], correlated[:, 1])[0, 1], abs=0.05)
    drift = spread("drifting", 0.01)
    assert drift[:, -1].std() > 1.5 * drift[:, 0].std()
    disturbed = spread("disturbed", 0.001)
    assert 0.05 == pytest.approx((disturbed > 0.02).mean(), abs=0.005)
    two = spread("two points", 0.01)
    assert 0.5 == pytest.approx((two > 0.005).mean(), abs=0.02)
    modes = spread("bimodal", 0.001)
    assert 0.5 == pytest.approx((modes > 0.002).mean(), abs=0.03)


def test_medians_of_steps_spread_little_more_than_their_launches():
    """Outliers of 2 to 10 times in 1.5 % of the steps hardly move a launch's median."""
    kind = next(kind for kind in KINDS if kind.name == "steps")
    new, _ = kind.draw(np.random.default_rng(3), 300, 0.0)
    assert 0.003 < new.std() < 0.006
    assert abs(new.mean()) < 0.002
