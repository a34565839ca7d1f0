"""Two stacks in one allocation, launched in turn: is the new one as fast as the old one, at the same work."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from perf.catalogue import Group, whole_groups
from perf.limits import LOSS_PARITY
from perf.suite.judge import Judge
from perf.verdict.stalls import STALL_STEPS, compare_stalls, stall_share


def _sides(group: Group, bench: Any) -> tuple[Any, Any]:
    old, new = group.members
    return bench.measure(old), bench.measure(new)


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_a_step_takes_no_longer(group: Group, limits: Judge) -> None:
    """The new stack's median step is not longer than the old one's by the margin."""
    limits.compare(group, "step_time", lambda measured: measured.step_medians)


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_a_start_takes_no_longer(group: Group, bench: Any, limits: Judge) -> None:
    """From the launch's first process to the end of the first training step: imports, data, compilation."""
    if any(launch.launcher == "fork" for launch in bench.measure(group.members[0]).launches):
        pytest.skip("launched by fork, which spares the imports that this would measure")
    limits.compare(group, "start_up", lambda measured: measured.start_seconds)


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_no_more_memory_is_needed(group: Group, limits: Judge) -> None:
    """The peak of a device's allocated memory has not grown."""
    if group.members[0].variant.device == "cpu":
        pytest.skip("nobody counts what torch allocates on a CPU")
    limits.compare(group, "peak_memory", lambda measured: measured.values("peak_memory"))


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_no_more_steps_stall(group: Group, bench: Any, limits: Judge) -> None:
    """The share of steps that take more than 1.5 medians has not risen by a point."""
    shortest = min(
        len(rank)
        for measured in _sides(group, bench)
        for launch in measured.launches
        for rank in launch.step_seconds
    )
    if shortest < STALL_STEPS:
        pytest.skip(f"a share of slow steps needs windows of {STALL_STEPS} steps, these have {shortest}")
    limits.compare(
        group,
        "stall_share",
        lambda measured: [
            max(stall_share(rank) for rank in launch.step_seconds) for launch in measured.launches
        ],
        rule=compare_stalls,
    )


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_both_stacks_do_the_same_work(group: Group, bench: Any) -> None:
    """Equal parameters and samples a step, the same first batch, and losses that rounding alone sets apart."""
    old, new = _sides(group, bench)
    assert {launch.parameters for launch in old.launches} == {launch.parameters for launch in new.launches}
    for mine, theirs in zip(old.launches, new.launches, strict=False):
        assert mine.seed == theirs.seed
        assert [e["first_batch"] for e in mine.effective] == [e["first_batch"] for e in theirs.effective]
        steps = [sum(len(rank) for rank in launch.step_seconds) for launch in (mine, theirs)]
        assert mine.samples / steps[0] == pytest.approx(theirs.samples / steps[1], rel=0.02)
    for name in ("loss_first", "loss_last"):
        first, expected, found = (
            statistics.median(getattr(launch, key) for launch in measured.launches)
            for measured, key in ((old, "loss_first"), (old, name), (new, name))
        )
        assert abs(found - expected) <= LOSS_PARITY * abs(first), (
            f"{name} is {found:.4g} with the new stack and {expected:.4g} with the old one"
        )
