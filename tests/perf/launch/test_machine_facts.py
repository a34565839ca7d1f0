from __future__ import annotations

import pytest

from perf.launch.machine_facts import unfit_by_telemetry


@pytest.fixture
def facts():
    """Return a function that gives the reasons against a card with these readings."""

    def facts(window=4.0, others=(), **changes):
        card = {"host": "n1", "uuid": "u0", "index": 0, "ranks": [0], **changes}
        return unfit_by_telemetry({"window_seconds": window, "gpus": [card, *others]})

    return facts


def test_a_card_that_nothing_is_known_of_is_fit(facts):
    """What could not be read is held against nobody."""
    assert [] == facts()
    assert [] == facts(throttle_seconds=None, event_reasons=None, other_processes=None, before={})
    assert [] == unfit_by_telemetry({})


@pytest.mark.parametrize("word", ["thermal", "hardware thermal slowdown", "power brake"])
def test_a_card_that_was_slowed_down_is_unfit(facts, word):
    """Seconds, window, temperature and what to look at are in the sentence."""
    (reason,) = facts(throttle_seconds={word: 0.5}, temperature_celsius={"max": 91.0})
    expected = (
        f"GPU 0 of n1 (u0) was slowed down ({word}) for 0.5 s of the window's 4 s, at up to 91 °C. "
        "Look at its cooling and power supply (`nvidia-smi -q -d PERFORMANCE`)."
    )
    assert expected == reason


@pytest.mark.parametrize(
    "changes",
    [
        {"throttle_seconds": {"thermal": 0.03}},
        {"throttle_seconds": {"power cap": 4.0, "reliability": 4.0}},
        {"throttle_seconds": {"thermal": None}},
        {"event_reasons": {"power cap": 1.0, "idle": 0.5}},
    ],
)
def test_a_power_cap_or_a_moment_is_no_slowdown(facts, changes):
    """A card at full work reaches its power cap by design, and a hundredth of the window moves no median."""
    assert [] == facts(**changes)


def test_without_a_counter_the_looks_decide(facts):
    """AMD's release, or an older driver, counts nothing; a reason that was seen in the window is one."""
    (reason,) = facts(event_reasons={"hardware slowdown": 0.5}, throttle_seconds={"power cap": 0.0})
    assert "was slowed down (hardware slowdown) in 50% of the looks" in reason
    # The counter of the same reason is what counts: a look may have met the only millisecond.
    assert [] == facts(event_reasons={"thermal": 0.5}, throttle_seconds={"thermal": 0.001})


def test_a_card_in_use_before_the_launch_is_shared(facts):
    """By memory: process numbers inside a container are the host's."""
    (reason,) = facts(before={"memory_used_bytes": 3 * 2**30, "utilization_percent": 80.0})
    assert "had 3 GiB in use and was 80 % busy before the launch touched it" in reason
    assert "nvidia-smi" in reason
    assert [] == facts(before={"memory_used_bytes": 4 * 2**20, "utilization_percent": 80.0})


def test_a_first_look_that_saw_the_launch_itself_is_no_neighbour(facts):
    """A forked launch has its context within 0.4 s: as many processes as ranks, and never another one beside them."""
    own = {"memory_used_bytes": 2**29, "utilization_percent": 0.0, "processes": 1}
    assert [] == facts(before=own, other_processes=0)
    assert 1 == len(facts(before={**own, "processes": 2}, other_processes=0))
    assert 2 == len(facts(before=own, other_processes=1))
    # Nothing is known of processes, or the driver hides them: memory speaks alone.
    assert 1 == len(facts(before={**own, "processes": 0}, other_processes=0))
    assert 1 == len(facts(before={**own, "processes": None}, other_processes=None))


def test_a_process_that_came_later_is_shared_too(facts):
    """Others on the card while the launch ran are counted."""
    (reason,) = facts(other_processes=2)
    assert "ran processes besides the launch's: 2." in reason


def test_cards_that_the_launch_did_not_use_are_no_concern_of_it(facts):
    """A neighbour's card on the same node may be hot and full."""
    other = {"host": "n1", "uuid": "u1", "index": 1, "ranks": [], "other_processes": 3}
    assert [] == facts(others=(other,))
