"""Two stacks in one allocation, launched in turn: is the new one as fast as the old one, at the same work."""

from __future__ import annotations

from typing import Any

import pytest

from perf.catalogue import SIDES, Group, whole_groups
from perf.limits import LOSS_PARITY
from perf.suite.judge import Judge
from perf.verdict.same_work import losses_apart
from perf.verdict.shares import compare_shares
from perf.verdict.stalls import STALL_STEPS, compare_stalls, stall_share


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_both_stacks_do_the_same_work(group: Group, limits: Judge) -> None:
    """Equal parameters and samples a step, the same first batch, a loss that falls: else nothing else is judged."""
    limits.same_work(group)


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_a_step_takes_no_longer(group: Group, limits: Judge) -> None:
    """The new stack's step is not longer than the old one's by the margin: medians, or means (`perf.verdict.pace`)."""
    limits.compare(group, "step_time", lambda measured: measured.step_times)


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_a_start_takes_no_longer(group: Group, bench: Any, limits: Judge) -> None:
    """From the launch's first process to the end of the first training step: imports, data, compilation."""
    measured = [bench.measure(member) for member in group.members]
    if any(launch.launcher == "fork" for side in measured for launch in side.launches):
        pytest.skip(
            "launched by fork, which spares the imports that this would measure; --launcher=fresh measures them"
        )
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
    launches = [launch for member in group.members for launch in bench.measure(member).launches]
    shortest = min(len(rank) for launch in launches for rank in launch.step_seconds)
    if shortest < STALL_STEPS:
        pytest.skip(
            f"a share of slow steps needs windows of {STALL_STEPS} steps, these have {shortest}; --stalls makes "
            "them so on GPUs"
        )
    limits.compare(
        group,
        "stall_share",
        lambda measured: [
            max(stall_share(rank) for rank in launch.step_seconds) for launch in measured.launches
        ],
        rule=compare_stalls,
    )


@pytest.mark.parametrize("group", whole_groups("compare"))
def test_losses_agree(group: Group, bench: Any) -> None:
    """On the same batches the losses of both stacks differ by no more than rounding does."""
    old, new = (bench.measure(group.of_side(side)[0]).launches for side in SIDES)
    apart = losses_apart(old, new, parity=LOSS_PARITY)
    assert not apart, "; ".join(apart)


@pytest.mark.parametrize("group", whole_groups("compare-loader"))
def test_the_loader_takes_no_larger_share(group: Group, limits: Judge) -> None:
    """The part of a step that is spent on the loader, 1 - T(synthetic) / T(full), has not risen by the margin."""
    limits.compare(
        group,
        "loader_share",
        lambda full, synthetic: [
            1.0 - fed / whole for whole, fed in zip(full.step_times, synthetic.step_times, strict=False)
        ],
        rule=compare_shares,
    )


@pytest.mark.parametrize("group", whole_groups("compare-scaling"))
def test_several_devices_are_no_less_worth_it(group: Group, limits: Judge) -> None:
    """The step on several devices over that on one, each with as many samples, has not risen by the margin."""
    limits.compare(
        group,
        "scaling",
        lambda one, several: [
            many / alone for alone, many in zip(one.step_times, several.step_times, strict=False)
        ],
    )
