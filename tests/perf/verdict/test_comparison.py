from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from perf.verdict.comparison import compare, question_for
from perf.verdict.looks import grossly_different, hodges_lehmann, pairwise_differences
from perf.verdict.outcome import Verdict

MARGIN = 0.02


@st.composite
def sides(draw):
    """Return two sides of 16 launches around 1 s: any spread, rounded so that ties occur, some disturbed."""
    source = random.Random(draw(st.integers(0, 2**32)))
    digits = draw(st.sampled_from([2, 3, 4, 12]))
    drawn_sides = []
    for sd in draw(st.tuples(*[st.sampled_from([0.0, 0.002, 0.01, 0.05])] * 2)):
        spikes = draw(st.sampled_from([0.0, 0.2]))
        drawn_sides.append(
            [
                round(math.exp(source.gauss(0.0, sd)) * (1.1 if source.random() < spikes else 1.0), digits)
                for _ in range(16)
            ]
        )
    return tuple(drawn_sides)


slowdowns = st.sampled_from([0.9, 1.0, 1.005, 1.01, 1.02, 1.05, 1.2])
caps = st.integers(1, 20)
few = settings(max_examples=50)


def drawn(seed: int, sd: float, slowdown: float = 1.0, launches: int = 16) -> list[float]:
    """Return launch medians of normal log noise around 0.1 s."""
    source = random.Random(seed)
    return [0.1 * slowdown * math.exp(source.gauss(0.0, sd)) for _ in range(launches)]


def steady(level: float, launches: int = 16) -> list[float]:
    """Return launches that differ by a millionth, so that no two are equal."""
    return [level * (1.0 + place * 1e-6) for place in range(launches)]


BELOW_HALF_THE_MARGIN = (
    [
        *(0.9229, 0.9831, 0.9421, 1.0087, 1.1273, 1.0343, 1.0147, 1.0302),
        *(0.9956, 1.0074, 1.0418, 1.0032, 0.9999, 0.9423, 0.9748, 0.9594),
    ],
    [
        *(0.9905, 0.9781, 1.0059, 1.0026, 1.0084, 1.0009, 0.9989, 0.9936),
        *(1.0194, 1.116, 1.0135, 0.9947, 1.1095, 1.1133, 1.0067, 1.0086),
    ],
)
"""New and old launches: times 1.005 their estimate at the look of 10 lies just below half a margin of 2 %."""


def clear_of_thresholds(new: list[float], base: list[float]) -> bool:
    """Whether rounding can't move a difference or an estimate over a threshold."""
    question = question_for(MARGIN)
    logs = [math.log(x) for x in new], [math.log(y) for y in base]
    for n in (5, 7, 10, 16):
        differences = pairwise_differences(logs[0][:n], logs[1][:n])
        near = [d for d in differences if d != 0.0 and min(abs(d), abs(d - question.far)) < 1e-9]
        if near or abs(hodges_lehmann(differences) - question.side) < 1e-9:
            return False
        for x, y in (logs, logs[::-1]):
            gap = min(x[:n]) - max(y[:n])
            ranges = [max(side[:n]) - min(side[:n]) for side in (x, y)]
            if any(abs(gap - width) < 1e-9 for width in ranges) and gap > 0.0:
                return False
    return True


@pytest.mark.parametrize(
    ("slowdown", "verdict", "launches"),
    [
        (1.0, Verdict.PASS, 5),
        (1.005, Verdict.PASS, 5),
        (0.9, Verdict.PASS, 5),
        (1.015, Verdict.FAIL, 7),
        (1.5, Verdict.FAIL, 7),
    ],
)
def test_quiet_sides_are_decided_early(slowdown, verdict, launches):
    """Without noise a slowdown below half the margin passes at 5 launches, one above it fails at 7."""
    judgement = compare(steady(0.1 * slowdown), steady(0.1), margin=MARGIN, cap=16)
    assert verdict is judgement.verdict
    assert launches == judgement.launches
    assert pytest.approx(slowdown, rel=1e-4) == judgement.estimate
    assert pytest.approx(1.0 + MARGIN) == judgement.limit
    assert 0 == judgement.wants


def test_five_launches_never_fail():
    """At 5 launches a side even a doubled step time only asks for two more."""
    judgement = compare(steady(0.2, 5), steady(0.1, 5), margin=MARGIN, cap=16)
    assert judgement.verdict is None
    assert 7 == judgement.wants
    capped = compare(steady(0.2, 5), steady(0.1, 5), margin=MARGIN, cap=5)
    assert Verdict.INCONCLUSIVE is capped.verdict
    assert "7 a side would answer" in capped.reasons[0]


def test_a_gross_difference_that_does_not_hold_goes_on_to_ten():
    """A gross difference at 5 that launch 6 or 7 blurs is no fail at 7; the next look takes 10."""
    new, base = steady(0.110), steady(0.100)
    new[6] = 0.0999
    undecided = compare(new[:7], base[:7], margin=MARGIN, cap=16)
    assert undecided.verdict is None
    assert 10 == undecided.wants
    failed = compare(new, base, margin=MARGIN, cap=16)
    assert Verdict.FAIL is failed.verdict
    assert 16 == failed.launches  # 10 differences at 10 launches lie below zero, more than the 4 allowed


def test_seven_is_skipped_without_a_gross_difference():
    """An undecided look at 5 without a gross difference asks for 10 launches, never 7."""
    new, base = drawn(3, 0.012, 1.02), drawn(4, 0.012)
    judgement = compare(new[:5], base[:5], margin=MARGIN, cap=16)
    assert judgement.verdict is None
    assert 10 == judgement.wants


@pytest.mark.parametrize(("present", "wants"), [(0, 5), (1, 5), (4, 5)])
def test_too_few_launches_ask_for_the_first_look(present, wants):
    """With fewer than 5 launches a side present the verdict is open and 5 are wanted."""
    judgement = compare(steady(0.1, present), steady(0.1, 16), margin=MARGIN, cap=10)
    assert judgement.verdict is None
    assert wants == judgement.wants
    assert present == judgement.launches
    assert (present == 0) is math.isnan(judgement.estimate)


@pytest.mark.parametrize("cap", [1, 2, 4])
def test_a_profile_that_cannot_afford_five_is_inconclusive(cap):
    """With fewer than 5 launches affordable the verdict is inconclusive and says what it takes."""
    judgement = compare(steady(0.2), steady(0.1), margin=MARGIN, cap=cap)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert cap == judgement.launches
    assert judgement.detectable is None
    assert "fewer than 5" in judgement.reasons[0]
    assert "shown by 10" in judgement.reasons[0]


def test_a_faster_side_passes_and_is_said_to_be_faster():
    """A new side that the bounds show to be faster passes with a first sentence that says so."""
    judgement = compare(drawn(1, 0.002, 0.95), drawn(2, 0.002), margin=MARGIN, cap=16)
    assert Verdict.PASS is judgement.verdict
    assert judgement.reasons[0].startswith("The new side is faster")
    equal = compare(drawn(1, 0.002), drawn(2, 0.002), margin=MARGIN, cap=16)
    assert not any("faster" in reason for reason in equal.reasons)


def test_a_noisy_machine_is_told_that_no_number_of_launches_answers():
    """At a spread beyond what the margin allows, the reasons name the spread and the one that is needed."""
    new, base = drawn(5, 0.06), drawn(6, 0.06)
    judgement = compare(new, base, margin=MARGIN, cap=16)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert "No number of launches up to 16" in judgement.reasons[1]
    assert "0.67 %" in judgement.reasons[1]


def test_a_low_cap_is_told_how_many_launches_would_answer():
    """Undecided at 5 with a clear difference, the reasons name the number of launches that would answer."""
    judgement = compare(drawn(3, 0.008, 1.04), drawn(9, 0.008), margin=MARGIN, cap=5)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert "About 10 launches a side would answer" in judgement.reasons[1]


def test_sixteen_are_taken_only_on_the_failing_side():
    """Undecided at 10 with the estimate below half the margin ends there, whatever is affordable."""
    stopped = 0
    for seed in range(40):
        judgement = compare(drawn(seed, 0.03), drawn(1000 + seed, 0.03), margin=MARGIN, cap=16)
        if judgement.verdict is Verdict.INCONCLUSIVE and judgement.launches == 10:
            stopped += 1
            assert judgement.estimate < 1.0 + MARGIN / 2.0
    assert stopped > 5


@pytest.mark.parametrize("bad", [0.0, -0.1, math.nan, math.inf])
def test_a_bad_step_time_is_named(bad):
    """A step time that is not positive and finite is an error that names side and launch."""
    with pytest.raises(ValueError, match="the new side, launch 2 of 3"):
        compare([0.1, bad, 0.1], [0.1], margin=MARGIN, cap=5)
    with pytest.raises(ValueError, match="the old side, launch 1 of 1"):
        compare([0.1], [bad], margin=MARGIN, cap=5)


@pytest.mark.parametrize(
    ("margin", "cap", "word"), [(0.0, 5, "margin"), (-0.1, 5, "margin"), (0.02, 0, "cap")]
)
def test_a_bad_margin_or_cap_is_refused(margin, cap, word):
    """A margin or a cap out of range is an error that says what is expected."""
    with pytest.raises(ValueError, match=word):
        compare([0.1], [0.1], margin=margin, cap=cap)


@few
@given(sides(), slowdowns, st.floats(1e-3, 1e3), caps)
def test_the_unit_of_time_does_not_matter(both, slowdown, scale, cap):
    """Seconds or milliseconds: scaling both sides changes nothing but the last digits."""
    new, base = [slowdown * x for x in both[0]], both[1]
    assume(clear_of_thresholds(new, base))
    judgement = compare(new, base, margin=MARGIN, cap=cap)
    scaled = compare([scale * x for x in new], [scale * y for y in base], margin=MARGIN, cap=cap)
    assert judgement.verdict is scaled.verdict
    assert judgement.launches == scaled.launches
    assert pytest.approx(judgement.estimate) == scaled.estimate


@few
@given(sides(), slowdowns, caps)
def test_swapping_the_sides_mirrors_the_answer(both, slowdown, cap):
    """Swapped sides give the reciprocal estimate, and never fail both ways."""
    new, base = [slowdown * x for x in both[0]], both[1]
    one, other = (compare(x, y, margin=MARGIN, cap=cap) for x, y in ((new, base), (base, new)))
    assert not (one.verdict is Verdict.FAIL and other.verdict is Verdict.FAIL)
    if one.launches == other.launches:
        assert pytest.approx(1.0 / one.estimate) == other.estimate


@few
@given(sides(), slowdowns, st.sampled_from([1.0001, 1.01, 1.3]), caps)
@example(BELOW_HALF_THE_MARGIN, 1.005, 1.0001, 16)
def test_a_slower_new_side_never_turns_fail_into_pass(both, slowdown, slower, cap):
    """Slowing every new launch by one factor keeps a fail a fail, and makes a pass of nothing that was looked at.

    The last look is taken above half the margin alone: what was left open just below it may be looked at once more.
    """
    new, base = [slowdown * x for x in both[0]], both[1]
    assume(clear_of_thresholds(new, base) and clear_of_thresholds([slower * x for x in new], base))
    before = compare(new, base, margin=MARGIN, cap=cap)
    after = compare([slower * x for x in new], base, margin=MARGIN, cap=cap)
    if before.verdict is Verdict.FAIL:
        assert Verdict.FAIL is after.verdict
    if before.verdict is not Verdict.PASS and after.verdict is Verdict.PASS:
        assert (10, 16) == (before.launches, after.launches)
        at_ten = compare([slower * x for x in new[:10]], base[:10], margin=MARGIN, cap=10)
        assert math.log(before.estimate) < question_for(MARGIN).side <= math.log(at_ten.estimate)


@few
@given(sides(), slowdowns, st.integers(0, 2**32))
def test_any_slower_launches_never_turn_a_fail_by_rank_into_a_pass(both, slowdown, seed):
    """A fail at 10 or 16 launches survives every launch of the new side being slower, each by its own factor."""
    source = random.Random(seed)
    new, base = [slowdown * x for x in both[0]], both[1]
    before = compare(new, base, margin=MARGIN, cap=16)
    after = compare([x * source.uniform(1.0, 1.2) for x in new], base, margin=MARGIN, cap=16)
    if before.verdict is Verdict.FAIL and before.launches >= 10:
        assert Verdict.PASS is not after.verdict


@few
@given(sides(), slowdowns, st.integers(0, 2**32), st.integers(5, 20))
def test_order_within_a_look_does_not_matter(both, slowdown, seed, cap):
    """Permuting launches 1-5, 6-7, 8-10 and 11-16 of either side changes nothing."""
    source = random.Random(seed)
    new, base = [slowdown * x for x in both[0]], both[1]
    mixed = []
    for side in (new, base):
        blocks = [side[:5], side[5:7], side[7:10], side[10:16]]
        mixed.append([x for block in blocks for x in source.sample(block, len(block))])
    one, other = compare(new, base, margin=MARGIN, cap=cap), compare(*mixed, margin=MARGIN, cap=cap)
    assert one.verdict is other.verdict
    assert one.launches == other.launches
    assert (one.estimate, one.low, one.high) == (other.estimate, other.low, other.high)
    assert one.detectable == pytest.approx(other.detectable)  # sums in another order differ in the last digit


@few
@given(sides(), slowdowns, st.lists(st.floats(0.01, 10.0), max_size=20), st.integers(5, 20))
def test_extra_launches_change_nothing(both, slowdown, extra, cap):
    """Launches beyond the deciding look, on one side or both, never change a judgement."""
    new, base = [slowdown * x for x in both[0]], both[1]
    judgement = compare(new, base, margin=MARGIN, cap=cap)
    n = judgement.launches
    assert judgement == compare(new[:n] + extra, base, margin=MARGIN, cap=cap)
    assert judgement == compare(new[:n], base[:n] + extra, margin=MARGIN, cap=cap)


@few
@given(sides(), slowdowns, caps)
def test_feeding_launches_as_they_are_wanted_ends_in_the_same_judgement(both, slowdown, cap):
    """Starting with none and adding what is wanted gives what all launches at once give."""
    new, base = [slowdown * x for x in both[0]], both[1]
    have = 0
    while True:
        judgement = compare(new[:have], base[:have], margin=MARGIN, cap=cap)
        if judgement.verdict is not None:
            break
        assert have < judgement.wants <= cap
        have = judgement.wants
    if cap >= 5:
        assert compare(new, base, margin=MARGIN, cap=cap) == judgement


@few
@given(sides(), slowdowns, caps)
def test_the_numbers_support_the_verdict(both, slowdown, cap):
    """A fail has its lower bound above no change, a pass its upper bound below the margin."""
    judgement = compare([slowdown * x for x in both[0]], both[1], margin=MARGIN, cap=cap)
    assert judgement.low <= judgement.estimate <= judgement.high
    assert judgement.reasons
    if judgement.verdict is Verdict.FAIL:
        assert 1.0 < judgement.low
        assert 1.0 + MARGIN / 2.0 <= judgement.estimate * (1 + 1e-12)
    if judgement.verdict is Verdict.PASS:
        assert judgement.high < judgement.limit
        assert judgement.estimate < 1.0 + MARGIN / 2.0


def test_a_gross_fail_rests_on_a_gross_difference():
    """A fail at 7 launches is given only where the logs are grossly different at 7."""
    seen = 0
    for seed in range(300):
        new, base = drawn(seed, 0.01, 1.08), drawn(5000 + seed, 0.01)
        judgement = compare(new, base, margin=MARGIN, cap=16)
        gross = grossly_different([math.log(x) for x in new[:7]], [math.log(y) for y in base[:7]])
        assert gross is (judgement.verdict is Verdict.FAIL and judgement.launches == 7)
        seen += gross
    assert 30 < seen < 290
