from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_records import PAIR_GROUP, record_of

from perf.contract import EpochRecord
from perf.verdict.advice import TRY, TRY_OF_SLOW
from perf.verdict.diagnosis import diagnose
from perf.verdict.moved import Side
from perf.verdict.slow_steps import slow_in_words, slow_steps

SINGLE, _, DDP2 = PAIR_GROUP.members


def steps(slow, count=400, usual=0.01, long=0.03):
    return [long if place in slow else usual for place in range(count)]


def epoch(batches):
    return EpochRecord(0, 1.0, batches, 64 * batches, complete=True, first_batch_seconds=0.1)


def side(*launches, phases=None, member=SINGLE, **changes):
    """Return a side whose launches have these ranks' step times; `phases` are those of one timed phase by phase."""
    records = [record_of(member, step_seconds=ranks) for ranks in launches]
    timed = None
    if phases is not None:
        whole = {"warmup_steps": 0, "epochs": [[epoch(400)] for _ in phases]}
        timed = record_of(member, phase_seconds=phases, **{**whole, **changes})
    return Side(member.id, records, timed)


def test_steps_that_are_slow_at_equal_distances_are_said_to_be():
    """Every 25th step: four in a hundred, of three medians, one every 24 usual steps and a slow one."""
    found = slow_steps(side(*[[steps(range(3, 400, 25))]] * 2))

    assert (0.04, 3.0) == (found.share, pytest.approx(3.0))
    assert (25.0, pytest.approx(0.27)) == (found.every, found.seconds)


@pytest.mark.parametrize(
    "launches",
    [
        [[3, 4, 5, 200, 201, 390]],
        [[100, 200, 300]],
        # One stall that lasts.
        [range(100, 106)],
        # Nine launches with bursts, and an even one.
        [*[[10, 90, 91, 150, 160, 390]] * 9, range(20, 400, 75)],
        # Each launch evenly, and no two alike.
        [range(3, 400, 20), range(3, 400, 60)],
        [],
    ],
    ids=["bursts", "few", "adjacent", "one of ten", "unlike", "none"],
)
def test_steps_that_are_slow_by_chance_have_no_distance(launches):
    """Bursts, too few of them, or one launch of many are not told as if they came back."""
    assert slow_steps(side(*([steps(slow)] for slow in launches))).every is None


def test_slow_steps_that_follow_each_other_are_one():
    """A stall of two steps at every 50th comes every 50 steps."""
    found = slow_steps(side([steps([at + place for at in range(5, 400, 50) for place in (0, 1)])]))

    assert (0.04, 50.0) == (found.share, found.every)


def test_the_phase_that_holds_the_extra_time_is_named_with_its_rank():
    """The other rank waits for it in communication, which is not the cause."""
    held, usual = steps([50, 150, 250], long=0.05), steps([])
    phases = [
        {"forward": usual, "communication": held, "optimizer": usual},
        {"forward": held, "communication": usual, "optimizer": usual},
    ]
    found = slow_steps(side([usual, held], phases=phases, member=DDP2, host=["n1", "n2"]))

    assert ("forward", 1, "n2") == (found.phase, found.rank, found.host)
    assert pytest.approx(1.0) == found.part


def test_communication_is_named_where_no_ranks_own_work_holds_the_time():
    """A network that stalls holds up all ranks alike."""
    held, usual = steps([50, 150, 250], long=0.05), steps([])
    phases = [{"forward": usual, "communication": held}] * 2

    assert "communication" == slow_steps(side([held, held], phases=phases, member=DDP2)).phase


def test_no_phase_is_named_where_none_holds_most_of_it():
    """A host that is taken away holds up whatever runs just then; launches without phases tell nothing either."""
    spread = [
        {
            name: steps([place * 90 + 7], long=0.05)
            for place, name in enumerate(("data", "forward", "backward"))
        }
    ]

    assert "" == slow_steps(side([steps([7, 97, 187])], phases=spread)).phase
    assert "" == slow_steps(side([steps([7, 97, 187])])).phase


def test_the_beginning_of_an_epoch_is_no_stall():
    """There a loader fills its queue, outside the window; what stalls within is named all the same."""
    begin, held, usual = steps([0, 200], long=0.2), steps([50, 250], long=0.05), steps([])
    changes = {"warmup_steps": 20, "epochs": [[epoch(200), epoch(200)]]}
    record = record_of(SINGLE, phase_seconds=[{"data": begin, "forward": held, "backward": usual}], **changes)

    assert "forward" == slow_steps(Side("new", [record_of(SINGLE, step_seconds=[held])], record)).phase


def test_the_diagnosis_of_stalls_tells_when_and_where_they_come():
    """It names no phase whose median moved: the median is what does not show stalls."""
    held, usual = steps(range(0, 400, 33), long=0.025), steps([])
    new = side([held], phases=[{"forward": usual, "optimizer": held}], host=["n1"])
    found = diagnose(new, side([usual]), metric="stall_share", rates={})

    assert found.text.startswith(
        "3.2 % of the steps are slow (0.00 % on the other side) and take 2.5 of their launch's medians. They come "
        "evenly, one every 33 steps (0.34 s). Timed phase by phase, 100.0 % of their extra time is in optimizer, on "
        "rank 0 of n1."
    )
    assert found.text.endswith(f"Try: {TRY_OF_SLOW}.")
    assert ("optimizer", 0, "n1") == (found.phase, found.rank, found.host)


def test_stalls_of_the_loader_are_told_as_the_loaders():
    """What is to be tried for them is what helps a loader."""
    held, usual = steps([50, 150, 250], long=0.05), steps([])
    new = side([held], phases=[{"data": held, "forward": usual}])

    assert diagnose(new, None, metric="stall_share", rates={}).text.endswith(f"Try: {TRY['data']}.")


@given(st.lists(st.lists(st.floats(1e-5, 10.0), min_size=1, max_size=40), min_size=1, max_size=4))
def test_any_step_times_have_a_share_between_none_and_half(launches):
    """No more than half of the steps can lie above 1.5 medians; where one does, it takes at least as long."""
    found = slow_steps(side(*([times] for times in launches)))

    assert 0.0 <= found.share <= 0.5
    assert found.medians == 0.0 or found.medians > 1.5
    assert slow_in_words(found, found)
