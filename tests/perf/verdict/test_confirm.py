from __future__ import annotations

import math

import pytest

from perf.verdict.confirm import judge_floor
from perf.verdict.floors import Occasion, floor_from
from perf.verdict.outcome import Verdict

SHAPE = (0.99, 0.999, 1.0, 1.001, 1.01)


def occasion(median: float, node: str, date: str = "2026-11-27") -> Occasion:
    """Return five launches around a median."""
    return Occasion(date, node, tuple(median * factor for factor in SHAPE))


REFERENCE = [occasion(1000.0, f"n{place}", f"2026-10-0{place}") for place in (1, 2, 3)]
FLOOR = floor_from(REFERENCE)
PROVISIONAL = floor_from(REFERENCE[:1])
ONE_NODE = floor_from([occasion(1000.0, "n1", f"2026-10-0{day}") for day in (1, 2, 3)])


def test_at_its_floor_a_rate_passes():
    """A rate that is not below the floor passes, in the unit of the rates."""
    judgement = judge_floor([occasion(990.0, "n9")], FLOOR, can_confirm=True)
    assert Verdict.PASS is judgement.verdict
    assert pytest.approx(990.0) == judgement.estimate
    assert pytest.approx(FLOOR.bound) == judgement.limit
    assert judgement.low <= judgement.estimate <= judgement.high
    assert 5 == judgement.launches


def test_a_first_miss_wants_a_confirmation_elsewhere():
    """A first miss is open while another node can be measured, and inconclusive where none can."""
    miss = [occasion(900.0, "n9")]
    asked = judge_floor(miss, FLOOR, can_confirm=True)
    assert asked.verdict is None
    assert 5 == asked.wants
    assert "on another node" in asked.reasons[-1]
    ended = judge_floor(miss, FLOOR, can_confirm=False)
    assert Verdict.INCONCLUSIVE is ended.verdict
    assert 0 == ended.wants
    assert "n9 on 2026-11-27 misses" in ended.reasons[0]


def test_missed_on_two_nodes_is_a_fail():
    """A miss that another node repeats is a fail that names both."""
    judgement = judge_floor([occasion(900.0, "n9"), occasion(890.0, "n8")], FLOOR, can_confirm=False)
    assert Verdict.FAIL is judgement.verdict
    assert "n9" in judgement.reasons[0]
    assert "n8" in judgement.reasons[0]
    assert pytest.approx(890.0) == judgement.estimate


def test_a_miss_that_is_not_repeated_names_the_slow_node():
    """A miss that another node doesn't repeat is inconclusive, and says at which node to look."""
    judgement = judge_floor([occasion(900.0, "n9"), occasion(1000.0, "n8")], FLOOR, can_confirm=True)
    assert Verdict.INCONCLUSIVE is judgement.verdict
    assert "look at n9" in judgement.reasons[0]


def test_the_same_node_confirms_nothing():
    """A second measurement on the same node of a larger system is no confirmation; a third elsewhere is."""
    again = [occasion(900.0, "n9"), occasion(900.0, "n9", "2026-11-28")]
    assert judge_floor(again, FLOOR, can_confirm=True).verdict is None
    assert Verdict.FAIL is judge_floor([*again, occasion(900.0, "n8")], FLOOR, can_confirm=True).verdict


def test_a_single_node_system_confirms_on_another_date():
    """With one node, another date confirms, and the same date doesn't."""
    first = occasion(900.0, "n1")
    floor = floor_from([occasion(1000.0, "n1", f"2026-10-0{day}") for day in (1, 2, 3)])
    same = judge_floor([first, occasion(900.0, "n1")], floor, can_confirm=True, single_node=True)
    assert same.verdict is None
    assert "on another date" in same.reasons[-1]
    later = judge_floor(
        [first, occasion(900.0, "n1", "2026-11-28")], floor, can_confirm=True, single_node=True
    )
    assert Verdict.FAIL is later.verdict


def test_a_reference_from_one_node_binds_that_node_only():
    """On another node such a reference says nothing; on its own node another date confirms."""
    elsewhere = judge_floor([occasion(900.0, "n9")], ONE_NODE, can_confirm=True)
    assert Verdict.UNREFERENCED is elsewhere.verdict
    assert "n1 alone" in elsewhere.reasons[0]
    dates = [occasion(900.0, "n1"), occasion(900.0, "n1", "2026-11-28")]
    assert Verdict.FAIL is judge_floor(dates, ONE_NODE, can_confirm=False).verdict


def test_a_provisional_miss_is_inconclusive_even_when_repeated():
    """One occasion can be the unusual one, so its miss never fails; it passes with a note."""
    first = occasion(900.0, "n1")
    once = judge_floor([first], PROVISIONAL, can_confirm=True)
    twice = judge_floor([first, occasion(900.0, "n1", "2026-11-28")], PROVISIONAL, can_confirm=True)
    for judgement in (once, twice):
        assert Verdict.INCONCLUSIVE is judgement.verdict
        assert "provisional" in judgement.reasons[-1]
        assert judgement.detectable is None
    kept = judge_floor([occasion(990.0, "n1")], PROVISIONAL, can_confirm=True)
    assert Verdict.PASS is kept.verdict
    assert "provisional" in kept.reasons[-1]


def test_without_a_reference_it_is_unreferenced():
    """A system without a reference is measured and not judged."""
    judgement = judge_floor([occasion(900.0, "n1")], None, can_confirm=True)
    assert Verdict.UNREFERENCED is judgement.verdict
    assert math.isnan(judgement.limit)
    assert pytest.approx(900.0) == judgement.estimate


@pytest.mark.parametrize("can_confirm", [True, False])
def test_too_few_launches_are_not_judged(can_confirm):
    """Fewer than 5 launches ask for 5, or are inconclusive where no more can be had."""
    short = Occasion("2026-11-27", "n9", (900.0, 900.0))
    for measured in ([short], [occasion(900.0, "n9"), Occasion("2026-11-27", "n8", (900.0,))]):
        judgement = judge_floor(measured, FLOOR, can_confirm=can_confirm)
        assert (None if can_confirm else Verdict.INCONCLUSIVE) is judgement.verdict
        assert (5 if can_confirm else 0) == judgement.wants
        assert "5 or more" in judgement.reasons[0]


def test_nothing_measured_yet_is_open():
    """Before the first measurement the verdict is open."""
    judgement = judge_floor([], FLOOR, can_confirm=True)
    assert judgement.verdict is None
    assert 5 == judgement.wants
    assert math.isnan(judgement.estimate)


def test_a_ceiling_is_missed_from_above():
    """For a metric where lower is better a higher value misses, and the reason says so."""
    floor = floor_from(REFERENCE, higher_is_better=False)
    assert Verdict.PASS is judge_floor([occasion(900.0, "n9")], floor, can_confirm=True).verdict
    judgement = judge_floor([occasion(1100.0, "n9"), occasion(1110.0, "n8")], floor, can_confirm=True)
    assert Verdict.FAIL is judgement.verdict
    assert "above the reference" in judgement.reasons[0]


def test_the_printed_loss_is_larger_than_the_tolerance():
    """The loss that two measurements would both miss with 95 % lies beyond the tolerance."""
    judgement = judge_floor([occasion(990.0, "n9")], FLOOR, can_confirm=True)
    expected = FLOOR.tolerance + 1.96 * FLOOR.spread * math.sqrt(1 + 1 / 3)
    assert pytest.approx(1.0 - math.exp(-expected)) == judgement.detectable
