"""The time that comparisons may take."""

from __future__ import annotations

from launch_records import spec_of

from perf.catalogue import GROUPS
from perf.profiles import PROFILES
from perf.suite.budget import Budget

GROUP = GROUPS["compare@mnist_cnn-single-1cpu-fp32-native"]
OTHER = GROUPS["compare@mnist_cnn-single-1cpu-default-native"]
PROFILE = PROFILES["compare"]


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def launch(budget: Budget, clock: Clock, seconds: float) -> None:
    """Take a launch that lasts so long."""
    with budget.timed(spec_of(GROUP.members[0])):
        clock.now += seconds


def test_the_first_group_is_asked_and_what_does_not_fit_is_skipped_with_its_reason():
    """Ten launches of 20 s do not fit into what is left of five minutes."""
    clock = Clock()
    budget = Budget(300.0, clock)
    assert budget.why_not(GROUP.members, PROFILE) is None
    for _ in range(10):
        launch(budget, clock, 20.0)
    reason = budget.why_not(OTHER.members, PROFILE)
    assert reason is not None
    assert (
        "not asked: 10 launches would take about 3 min 20 s, and 1 min 40 s of the budget of 5 min" in reason
    )


def test_launches_beside_the_judged_ones_count():
    """Ten of 20 s would fit; with one in phases of each side they don't."""
    clock = Clock()
    for extra, fits in ((0, True), (1, False)):
        budget = Budget(420.0, clock)
        assert budget.why_not(GROUP.members, PROFILE) is None
        for _ in range(10):
            launch(budget, clock, 20.0)
        reason = budget.why_not(OTHER.members, PROFILE, lambda member, extra=extra: extra)
        assert fits is (reason is None)
    assert reason is not None
    assert reason.startswith("not asked: 12 launches would take about 4 min")


def test_what_was_decided_for_a_group_holds_for_all_of_its_tests():
    """A group that was begun is judged to its end."""
    clock = Clock()
    budget = Budget(60.0, clock)
    assert budget.why_not(GROUP.members, PROFILE) is None
    launch(budget, clock, 59.0)
    assert budget.why_not(GROUP.members, PROFILE) is None
    assert not budget.affords(GROUP.members, 5)
    assert budget.affords(GROUP.members, 0)


def test_without_a_limit_everything_fits():
    """However long it took."""
    clock = Clock()
    budget = Budget(None, clock)
    launch(budget, clock, 1e9)
    assert budget.why_not(GROUP.members, PROFILE) is None
    assert budget.affords(GROUP.members, 1000)
