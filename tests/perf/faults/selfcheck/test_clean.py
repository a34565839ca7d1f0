from __future__ import annotations

import pytest

from perf import records
from perf.faults.selfcheck.clean import CAP, Cleaner, dealt
from perf.launch.failure import LaunchFailed


@pytest.fixture
def cleaner(tmp_path, make_record):
    """Return a function that makes a cleaner whose launches take so long, and a list of all specs."""
    specs = []

    def make(seconds, error=None):
        def launch(spec):
            specs.append(spec)
            if error:
                raise error
            # Every launch is a little longer than the one before: no side is of one value.
            own = seconds[spec.mode] * (1.0 + 0.001 * len(specs))
            return make_record(
                variant=spec.variant,
                group=spec.group,
                launch=spec.launch,
                mode=spec.mode,
                round=spec.round,
                escalation=spec.escalation,
                median_step_seconds=own,
            )

        run = records.Run(tmp_path)
        return Cleaner(run, launch, device="cpu", cores=2, cache_dir="/cache"), specs

    return make


def test_a_quiet_machine_passes_with_five_launches_a_side(cleaner, tmp_path):
    """Both sides of the loader's share are launched in turn, and nothing else; record and verdict are kept."""
    judge, specs = cleaner({"full": 0.012, "synthetic": 0.010})
    one = judge.judge(3)

    assert ("pass", 5, 3) == (one.verdict, one.launches, one.number)
    assert ["full", "synthetic", "synthetic", "full"] == [spec.mode for spec in specs[:4]]
    assert 10 == len(specs) == len(records.Run(tmp_path).records())
    assert "clean[3]" == records.Run(tmp_path).verdicts()[0].test


def test_no_launch_is_in_two_judgements(cleaner):
    """Each judgement takes its own, under names of its own."""
    judge, specs = cleaner({"full": 0.012, "synthetic": 0.010})
    judge.judge(1)
    judge.judge(2)

    assert 20 == len({spec.launch for spec in specs})


def test_a_clean_launch_over_the_limit_is_told_as_the_fail_that_it_is(cleaner):
    """A slow loader fails here as in any run: that would be a false alarm."""
    judge, specs = cleaner({"full": 0.1, "synthetic": 0.01})
    one = judge.judge(1)

    assert "fail" == one.verdict
    assert "loader's share" in one.reasons[0]
    assert 2 * CAP >= len([spec for spec in specs if not spec.phases and not spec.line_profile])


def test_a_launch_that_dies_is_an_alarm_with_its_words(cleaner):
    """Whatever a clean launch dies of is kept."""
    judge, _ = cleaner({}, LaunchFailed("rank 0 died"))
    one = judge.judge(1)

    assert ("failed", ["rank 0 died"]) == (one.verdict, one.reasons)


def test_equal_launches_are_dealt_in_the_order_in_which_they_were_made(make_record):
    """Ten launches of a variant make one judgement; what is left over, and what was invalid, makes none."""
    launches = [make_record(median_step_seconds=0.01 + 1e-5 * number) for number in range(29)]
    launches.append(make_record(valid=False))
    found = list(dealt(launches, 7))

    assert [7, 8] == [one.number for one in found]
    assert {"pass"} == {one.verdict for one in found}
    assert {5} == {one.launches for one in found}
