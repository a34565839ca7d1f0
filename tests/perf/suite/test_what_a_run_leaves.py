"""What a run leaves for others: JUnit's file, the report, and the mark of a planted fault."""

from __future__ import annotations

import json
import re

from perf import records

FACTS = {
    "launch": "l",
    "rank": 1,
    "host": "<script>",
    "gpus": ["5fa5"],
    "status": "killed by signal 9 (SIGKILL)",
}


def test_who_failed_first_reaches_junit_and_the_report(suite):
    """Rank, host and GPU of a failed launch are properties of its tests and stand in the report, as text."""
    done = suite(
        "perf/test_ddp.py", cores=2, fail={"ddp-1cpu": "rank 1 was killed"}, facts={"ddp-1cpu": FACTS}
    )

    assert 11 == done.status, done.output
    junit = (done.run.folder / "junit.xml").read_text(encoding="utf-8")
    for name, value in (("rank", "1"), ("gpu", "5fa5"), ("host", "&lt;script&gt;")):
        assert f'<property name="failed_{name}" value="{value}"' in junit
    assert f'<property name="stackproof_run" value="{done.run.name}"' in junit
    report = (done.run.folder / "report.html").read_text(encoding="utf-8")
    assert "rank 1 on &lt;script&gt;, GPU 5fa5: killed by signal 9 (SIGKILL)" in report
    assert "No answer: " in report


def test_an_exact_fact_that_is_wrong_is_in_the_report(suite):
    """It leaves no judgement, so the report knows it from the outcomes of tests."""
    done = suite("perf/test_throughput.py", cores=2, changes={"mnist_cnn": {"loss_last": 9.0}})

    assert 1 == done.status, done.output
    report = (done.run.folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"No: \d+ exact facts? (is|are) wrong\.", report)
    outcomes = records.read_lines(done.run.folder / "tests.jsonl", records.OutcomeRecord)
    assert "failed" in {outcome.outcome for outcome in outcomes}


def test_two_workers_leave_one_report_and_each_test_once(suite):
    """Under xdist only the controller keeps outcomes and draws."""
    done = suite("perf/test_ddp.py", "perf/test_loader.py", "-n", "2", cores=2)

    outcomes = records.read_lines(done.run.folder / "tests.jsonl", records.OutcomeRecord)
    assert len(outcomes) == len({outcome.test for outcome in outcomes})
    assert 1 == done.output.count(f"report: {done.run.folder / 'report.html'}")


def test_a_report_that_cannot_be_drawn_does_not_fail_the_run(suite, tmp_path):
    """Without plotly there is a line that says so and how to try again; the exit status is the measurement's."""
    blocked = tmp_path / "blocked"
    (blocked / "plotly").mkdir(parents=True)
    (blocked / "plotly" / "__init__.py").touch()
    done = suite("perf/test_loader.py", "-o", f"pythonpath=. {blocked}", "--profile", "smoke", cores=2)

    assert 0 == done.status, done.output
    assert (
        "note: report.html could not be drawn (NoPlotly: the report's pictures need the package plotly"
        in done.output
    )
    assert not (done.run.folder / "report.html").exists()


def test_junit_holds_the_verdict_and_no_failure_for_inconclusive(suite):
    """Inconclusive is a skip with its reason in JUnit; the verdict's numbers are properties of the test."""
    done = suite("perf/test_ddp.py", cores=2, steps={"ddp-1cpu": 0.012})
    junit = (done.run.folder / "junit.xml").read_text()

    assert "<failure" not in junit
    assert 'message="inconclusive: ' in junit
    assert 'name="verdict" value="inconclusive"' in junit or 'value="inconclusive"' in junit


def test_a_planted_fault_marks_every_launch_and_the_run(suite):
    """Environment and flags name it, so that no planted run can pass for an honest one."""
    outcome = suite(
        "perf/test_throughput.py", "--plant", "slow-rank", "-k", "loss_falls and mnist_cnn-ddp-2cpu", cores=2
    )
    environment = json.loads((outcome.run.folder / "environment.json").read_text())

    assert "slow-rank" == environment["options"]["plant"]
    assert outcome.run.records()
    assert all("planted: slow-rank" in record.flags for record in outcome.run.records())


def test_a_fault_can_be_planted_in_launches_only_and_must_be_known(suite):
    """An unknown name is a usage error with the nearest one; stored launches have no room for a fault."""
    unknown = suite("perf/test_throughput.py", "--plant", "slow-rnk")
    assert 4 == unknown.status
    assert "there is no fault 'slow-rnk' to plant; the nearest: slow-rank" in unknown.output
    first = suite("perf/test_throughput.py", "-k", "loss_falls and mnist_cnn-ddp-2cpu", cores=2)
    stored = suite("perf/test_throughput.py", "--plant", "slow-rank", "--records", str(first.run.folder))
    assert 4 == stored.status
    assert "--plant plants a fault in launches" in stored.output


def test_the_option_that_plants_is_not_shown_to_users(suite):
    """It is the self-check's own."""
    assert "--plant" not in suite("--help").output
