from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perf.verdict.one_sample import FAIL_LEVEL, ONE_SAMPLE_LOOKS, POWER_FACTOR, judge_one_sample
from perf.verdict.outcome import Verdict
from perf.verdict.trials import noise, one_sample_trial

few = settings(max_examples=50)


def test_any_noise_on_the_limit_passes_in_less_than_one_in_twenty():
    """The sign-test levels of both looks add up to less than 5 %."""
    levels = [float(stats.binom.cdf(allowed, n, 0.5)) for n, allowed in ONE_SAMPLE_LOOKS.items()]
    assert pytest.approx([1 / 32, 11 / 1024]) == levels
    assert sum(levels) < 0.05


@pytest.mark.parametrize(
    ("values", "verdict", "launches"),
    [
        ([1.4] * 5, Verdict.PASS, 5),
        ([1.4] * 4 + [1.6] + [1.4] * 5, Verdict.PASS, 10),
        ([1.4] * 4 + [1.5] + [1.4] * 5, Verdict.PASS, 10),  # on the limit counts as reaching it
        ([1.4] * 3 + [1.6] * 2 + [1.4] * 5, Verdict.INCONCLUSIVE, 10),
        ([1.6 + place / 1000 for place in range(10)], Verdict.FAIL, 10),
        ([1.6] * 9 + [1.4], Verdict.INCONCLUSIVE, 10),
        ([1.51] + [2.5, 1.6] * 4 + [9.0], Verdict.INCONCLUSIVE, 10),  # all exceed, the t bound doesn't
    ],
)
def test_one_sample_is_judged_at_five_and_ten(values, verdict, launches):
    """All 5 or 9 of 10 below the limit pass; all 10 above it fail if the t bound is above it too."""
    judgement = judge_one_sample(values, limit=1.5, cap=16)
    assert verdict is judgement.verdict
    assert launches == judgement.launches
    assert judgement.low <= judgement.estimate <= judgement.high


def test_the_t_bound_is_scipys():
    """The printed lower bound is Student's at 2e-4 on the logs, as scipy computes it."""
    logs = [random.Random(place).gauss(0.5, 0.1) for place in range(10)]
    judgement = judge_one_sample([math.exp(value) for value in logs], limit=1.2, cap=10)
    bound = stats.t.interval(1 - 2 * FAIL_LEVEL, 9, loc=sum(logs) / 10, scale=stats.sem(logs))[0]
    assert Verdict.FAIL is judgement.verdict
    assert pytest.approx(math.exp(bound)) == judgement.low


@pytest.mark.parametrize(("present", "cap", "wants"), [(0, 5, 5), (4, 10, 5), (7, 10, 10)])
def test_too_few_launches_ask_for_the_next_look(present, cap, wants):
    """Fewer launches than the next look needs leave the verdict open."""
    judgement = judge_one_sample([2.0] * present, limit=1.5, cap=cap)
    assert judgement.verdict is None
    assert wants == judgement.wants


@pytest.mark.parametrize(
    ("cap", "words"), [(1, "affords 1 launch;"), (4, "fewer than 5"), (9, "10 launches can answer")]
)
def test_what_the_profile_cannot_afford_is_said(cap, words):
    """Below 5 launches nothing is decided, below 10 nothing fails, and the reasons say so."""
    judgement = judge_one_sample([2.0] * 16, limit=1.5, cap=cap)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert words in " ".join(judgement.reasons)
    assert judgement.detectable is None


@few
@given(st.integers(0, 10**6), st.floats(0.5, 3.0), st.floats(0.01, 100.0), st.floats(1.0, 1.5))
def test_scale_slowness_and_extra_launches(seed, limit, scale, slower):
    """The unit doesn't matter, larger values never turn fail into pass, and extra launches change nothing."""
    source = random.Random(seed)
    values = [math.exp(source.gauss(0.3, 0.1)) for _ in range(10)]
    judgement = judge_one_sample(values, limit=limit, cap=16)
    scaled = judge_one_sample([scale * value for value in values], limit=scale * limit, cap=16)
    assert judgement.verdict is scaled.verdict
    after = judge_one_sample([slower * value for value in values], limit=limit, cap=16)
    if judgement.verdict is not Verdict.PASS:
        assert Verdict.PASS is not after.verdict
    assert judgement == judge_one_sample(values[: judgement.launches] + [99.0] * 6, limit=limit, cap=16) or (
        judgement.verdict is None
    )


def test_the_printed_excess_has_its_power():
    """At the power factor 95 % of normal samples fail, and on the limit hardly any does."""
    at, on = one_sample_trial(noise("clean"), 0.01, (POWER_FACTOR, 0.0), 20_000)
    assert 0.945 < at.fail < 0.96
    assert on.fail < 1e-3
    assert on.passed < 0.05


def test_bad_values_are_refused():
    """A value that is not positive is an error that names its launch."""
    with pytest.raises(ValueError, match="the sample, launch 2 of 2"):
        judge_one_sample([1.0, 0.0], limit=1.5, cap=5)
