from __future__ import annotations

import dataclasses
import json

import pytest
from launch_records import record_of

from perf import contract, records
from perf.calibration.experiments import experiments_of, main
from perf.catalogue import GROUPS
from perf.faults.plant import FLAG

GROUP = GROUPS["compare@mnist_cnn-single-1cpu-fp32-native"]
OLD, NEW = GROUP.members


def launches(slowdown, count=20, planted="", **changes):
    """Launches of both sides in turn, with a spread of 0.1 %."""
    found = []
    for i in range(count):
        noise = 1 + (i * 7 % 5 - 2) / 2000
        flags = [FLAG + planted] if planted else []
        found.append(record_of(OLD, 0.01 * noise, launch=f"o{i}", run="r", **changes))
        found.append(
            record_of(NEW, 0.01 * noise * (1 + slowdown), launch=f"n{i}", run="r", flags=flags, **changes)
        )
    return found


def test_a_planted_run_gives_planted_experiments_and_clean_ones():
    """20 a side hold two planted experiments of 10, and one clean one of the old side's launches."""
    found = experiments_of(launches(0.03, planted="device-time-3"), 0.02)

    assert ["device-time-3", "device-time-3", "clean"] == [one.what for one in found]
    assert ["fail", "fail", "pass"] == [one.verdict for one in found]
    assert 1.03 == pytest.approx(found[0].estimate, rel=0.002)


def test_equal_stacks_give_clean_experiments():
    """Where nothing was planted both sides are clean, and are judged as they were compared."""
    found = experiments_of(launches(0.0), 0.02)

    assert [("clean", "pass")] * 2 == [(one.what, one.verdict) for one in found]


def test_experiments_share_no_launch():
    """Changing the last ten launches of a side changes the second experiment alone."""
    plain = launches(0.0)
    slow = [
        record_of(NEW, 0.02, launch=one.launch, run="r")
        if one.side == "new" and int(one.launch[1:]) >= 10
        else one
        for one in plain
    ]
    before, after = experiments_of(plain, 0.02), experiments_of(slow, 0.02)

    assert before[0] == after[0]
    assert ("pass", "fail") == (before[1].verdict, after[1].verdict)


def test_what_ran_under_a_profiler_or_was_replaced_is_in_no_experiment(tmp_path, capsys):
    """A launch that says why, and one that another was taken in place of, count neither as clean nor to the spread."""
    plain = launches(0.0)
    watched = record_of(
        OLD,
        0.02,
        launch="w",
        run="r",
        operators=[{"aten::add": contract.Operator(calls=1.0, host_seconds=1e-3, device_seconds=0.0)}],
    )
    unfit = record_of(OLD, 0.03, launch="u", run="r", valid=False, unfit=["throttled"])
    again = dataclasses.replace(plain[0], replaces="u")
    run = records.Run.create(tmp_path)
    for record in (unfit, again, *plain[1:], watched):
        run.append(records.RECORDS, record)

    assert 0 == main([str(run.folder)])
    assert experiments_of(plain, 0.02) == experiments_of([unfit, again, *plain[1:], watched], 0.02)
    assert "20 launches of the old side spread by 0.07" in capsys.readouterr().out


def test_what_is_invalid_or_no_comparison_is_no_experiment():
    """An invalid launch leaves its variant out; launches without a side are no comparison."""
    assert [] == experiments_of(launches(0.0, valid=False), 0.02)
    assert [] == experiments_of([record_of(GROUPS["loader@mnist_cnn-cpu"].members[0])] * 20, 0.02)


def test_the_command_prints_the_spread_and_counts(tmp_path, capsys):
    """The old side's spread is held against a third of the margin, and each kind of experiment is counted."""
    run = records.Run.create(tmp_path, "r")
    for one in launches(0.03, planted="device-time-3"):
        run.append(records.RECORDS, one)

    assert 0 == main([str(run.folder)])
    out = capsys.readouterr().out
    assert "20 launches of the old side spread by" in out
    assert "below a third of the margin of 2.0 %" in out
    assert "device-time-3: 2 of 2 disjoint experiments fail" in out
    assert "clean: 0 of 1 disjoint experiments fail" in out

    assert 0 == main([str(run.folder), "--json"])
    assert 3 == len(json.loads(capsys.readouterr().out)["experiments"])
    assert 2 == main([str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit):
        main([str(run.folder), "--size", "2"])
