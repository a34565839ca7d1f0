"""Records, verdicts and JUnit files of jobs become their run's."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from launch_records import PAIR_GROUP, record_of

from perf import records
from perf.cluster.folders import JobFolder
from perf.cluster.merging import merge_jobs, merge_junit

JUNIT = '<testsuites><testsuite name="pytest" tests="1"><testcase name="{name}"/></testsuite></testsuites>'


def verdict(test: str) -> records.VerdictRecord:
    """Return a judgement."""
    return records.VerdictRecord(
        "other", test, "g", "v", "", "m", "ratio", 1.0, 0.9, 1.1, 1.2, "pass", 5, 0.1
    )


def a_job(run, name, started, **changes) -> JobFolder:
    """Write the files of one job."""
    folder = JobFolder(run.folder / "jobs" / name)
    folder.path.mkdir(parents=True)
    job = records.Run(folder.path, part_of=run.name)
    job.append(
        records.RECORDS,
        record_of(PAIR_GROUP.members[0], launch=f"{name}-0001", run=run.name, started_at=started, **changes),
    )
    job.append(records.VERDICTS, verdict(f"test of {name}"))
    job.write_environment({"host": f"host of {name}", "nodes": 1})
    (folder.path / "junit.xml").write_text(JUNIT.format(name=f"x {name}"))
    return folder


def test_a_runs_files_hold_those_of_all_jobs(tmp_path):
    """Launches in the order of their start, all under the run's name; merging again gives the same."""
    run = records.Run.create(tmp_path, "R")
    jobs = [a_job(run, "b", 5.0), a_job(run, "a", 3.0)]

    for _ in range(2):
        assert [] == merge_jobs(run, jobs, {"jobs": ["x"]})

    assert ["a-0001", "b-0001"] == [record.launch for record in run.records()]
    assert {"R"} == {record.run for record in run.records()} | {v.run for v in run.verdicts()}
    environment = json.loads((run.folder / "environment.json").read_text())
    assert ("host of b", ["x"], "R") == (environment["host"], environment["jobs"], environment["run"])
    assert ["b", "a"] == [suite.get("name") for suite in ET.parse(run.folder / "junit.xml").getroot()]


def test_partial_records_of_a_job_that_was_killed_are_kept(tmp_path):
    """A line that was cut short costs that launch and is named; a job that left nothing costs nothing else."""
    run = records.Run.create(tmp_path, "R")
    job = a_job(run, "a", 3.0)
    with (job.path / "records.jsonl").open("a") as file:
        file.write('{"run": "R", "laun\n')
    with (job.path / "records.jsonl").open("ab") as file:
        file.write(b'{"run": "R", "workload": "\xff"}\n')
    empty = JobFolder(run.folder / "jobs" / "none")
    empty.path.mkdir()
    (job.path / "junit.xml").write_text("<testsuites><testsu")

    notes = merge_jobs(run, [job, empty], {})

    assert 1 == len(run.records())
    assert 3 == len(notes)
    assert any("records.jsonl:2" in note for note in notes)
    assert any("junit.xml can't be read" in note for note in notes)


def test_line_profiles_are_brought_along(tmp_path):
    """The run then needs its jobs' folders no more."""
    run = records.Run.create(tmp_path, "R")
    job = a_job(run, "a", 3.0, line_profiles=["profiles/a-0001-x.lprof"])
    (job.path / "profiles").mkdir()
    (job.path / "profiles" / "a-0001-x.lprof").write_text("p")

    merge_jobs(run, [job], {})

    (name,) = run.records()[0].line_profiles
    assert "p" == (run.folder / name).read_text()


def test_no_junit_file_at_all_gives_an_empty_one(tmp_path):
    """A CI that reads it finds a file."""
    assert [] == merge_junit([tmp_path / "none.xml"], tmp_path / "junit.xml")
    assert [] == list(ET.parse(tmp_path / "junit.xml").getroot())
