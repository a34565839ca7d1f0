"""Runs that are judged again from their stored launches, as a user types it, over a stack that answers at once."""

from __future__ import annotations

import json
from pathlib import Path

from perf import contract, records

ROOT = Path(__file__).parents[3]
H100S = ROOT / "docs" / "measurements" / "2026-11-28-h100-whole"


def test_stored_launches_are_judged_again_to_the_same_verdicts(suite, tmp_path):
    """--records measures nothing, gives the same verdicts and says where they were measured."""
    first = suite("perf", cores=2, steps={"ddp-1cpu": 0.02})
    stored, verdicts = first.run.folder, first.verdicts
    again = suite("perf", "--records", str(first.results / "latest"), fail={"mnist": "measured again"})

    assert first.status == again.status == 1, again.output
    assert verdicts == again.verdicts
    assert not (again.run.folder / "launches").exists()
    assert str(stored) in (again.run.folder / "environment.json").read_text()


def test_line_profiles_of_stored_launches_go_into_the_new_run(suite):
    """The H100s' records are judged to the verdicts beside them, and their line profiles are printed and copied."""
    again = suite("perf", "--records", str(H100S))

    assert 0 == again.status, again.output
    stored = [json.loads(line) for line in (H100S / "verdicts.jsonl").read_text().splitlines()]
    # Tests that came later are judged too.
    assert {v["test"]: v["verdict"] for v in stored}.items() <= again.verdicts.items()
    assert len(list((H100S / "profiles").iterdir())) == len(list((again.run.folder / "profiles").iterdir()))
    assert "for data, target in train_loader" in again.output
    assert "is missing" not in again.output


def test_stored_launches_are_copied_once_by_two_workers(suite):
    """With -n 2 the new run holds each stored launch once."""
    first = suite("perf/test_ddp.py", cores=2)
    count = len(first.run.records())
    again = suite("perf/test_ddp.py", "--records", str(first.run.folder), "-n", "2")

    assert 0 == again.status, again.output
    assert count == len(again.run.records())


def test_a_line_that_was_cut_off_costs_one_launch_only(suite):
    """Of a run that was killed inside a line the whole launches are judged, and the broken line is said."""
    first = suite("perf/test_ddp.py", cores=2)
    file = first.run.folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]))
    again = suite("perf/test_ddp.py", "--records", str(first.run.folder))

    assert len(lines) - 1 == len(again.run.records())
    assert f"records.jsonl:{len(lines)}" in again.output


def test_a_smoke_run_is_judged_again_as_smoke(suite):
    """The profile of stored launches is theirs: inconclusive stays 0, and no group is missing."""
    first = suite("perf", "--profile", "smoke", cores=2)
    again = suite("perf", "--records", str(first.run.folder))

    assert 0 == again.status, again.output
    assert first.verdicts == again.verdicts


def test_launches_of_two_hosts_are_not_compared(suite):
    """A ratio over launches of different hosts is invalid, and says so."""
    done = suite("perf/test_ddp.py", cores=2, changes={"ddp-1cpu": {"host": ["another"]}})

    assert "invalid" == done.verdicts["test_ddp_overhead_at_world_size_1[ddp@mnist_cnn-cpu-1]"]
    assert "different hosts" in done.output


def test_what_the_stored_runs_lack_is_skipped_with_the_reason(suite):
    """A test whose launches are not there is skipped, not failed, and says which launches it lacks."""
    first = suite("perf/test_ddp.py", cores=2)
    again = suite("perf", "--records", str(first.run.folder), "-rs")

    assert 0 == again.status, again.output
    assert "holds no launch of mnist_cnn-single-1cpu-fp32-native+epochs" in again.output


def test_records_keep_to_the_contract(suite):
    """Every line of a run reads back as the record that it is."""
    done = suite("perf", "--profile", "smoke", cores=2)

    assert all(isinstance(r, contract.LaunchRecord) for r in done.run.records())
    assert all(isinstance(v, records.VerdictRecord) for v in done.run.verdicts())
