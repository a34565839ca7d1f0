"""Following jobs: what schedulers do to them, and what is made of it."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from fake_scheduler import FakeScheduler, ended, pending, running

from perf.cluster.folders import RunFolder, Submission
from perf.cluster.jobs import Job
from perf.cluster.proof import End
from perf.cluster.scheduler import Phase, Usage
from perf.cluster.watching import UNANSWERED_SECONDS, Unanswered, Watcher

USAGE = Usage("sacct", wall_seconds=5.0)


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def make(tmp_path, site):
    """Make a run of jobs with its watcher: `make(scheduler, "a", "b", most=1)`."""

    def build(scheduler, *names, most=0, more="poll_seconds = 5.0\naccounting_seconds = 60.0"):
        jobs = [
            Job(
                name=name, nodes=1, gpus=0, cores=1, exclusive=True, planned_seconds=1.0, seconds=60,
                node_ids=["t::a", "t::b"],
            )
            for name in names or ("a",)
        ]  # fmt: skip
        run = RunFolder(tmp_path / "run")
        submission = Submission(
            run="run",
            kind="slurm",
            stack="s",
            created=0.0,
            user="u",
            host="h",
            arguments=[],
            most_jobs=most,
            jobs=jobs,
        )
        for job in jobs:
            if not run.job(job.name).path.exists():
                run.job(job.name).prepare(job, "#!/bin/bash\n")
        said = []
        clock = Clock()
        watcher = Watcher(run, submission, site(scheduler=more), scheduler, said.append, clock)
        watcher.said, watcher.clock, watcher.run = said, clock, run
        return watcher

    return build


def finish(watcher, name="a", status=0, outcomes=("t::a", "t::b"), caught=""):
    """Leave what a job's script and pytest leave."""
    folder = watcher.run.job(name).path
    (folder / "started").mkdir(exist_ok=True)
    (folder / "started" / "at").write_text("5\n")
    lines = [json.dumps({"test": node_id, "outcome": "passed"}) for node_id in outcomes]
    (folder / "tests.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if status is not None:
        (folder / "exit_code").write_text(f"{status} 9 {caught}\n")


def steps(watcher, count=12, seconds=15.0):
    """Let time pass, until every job's end is known."""
    for _ in range(count):
        watcher.step()
        if watcher.over:
            return watcher.jobs[0].ending
        watcher.clock.now += seconds
    raise AssertionError(f"not over after {count} steps: {watcher.said}")


def test_a_good_job_is_seen_pending_running_and_done(make):
    """Each change is said once, with reason and place; the account is kept on disk."""
    scheduler = FakeScheduler({"a": [pending(), pending(), running(), ended()]}, {"id-a": (ended(), USAGE)})
    watcher = make(scheduler)
    finish(watcher)

    assert End.DONE is steps(watcher).end
    assert [
        "a: submitted as id-a",
        "a (id-a): pending (Resources)",
        "a (id-a): running on n1",
    ] == watcher.said[:3]
    assert (End.DONE, 5.0) == (
        watcher.run.job("a").ending()[0].end, watcher.run.job("a").ending()[1].wall_seconds,
    )  # fmt: skip


def test_late_accounting_is_waited_for_and_then_used(make):
    """The queue has lost the job before the accounting has it."""
    scheduler = FakeScheduler({"a": [running(), None]}, {})
    watcher = make(scheduler)
    finish(watcher)
    for _ in range(3):
        watcher.step()
        watcher.clock.now += 5
    assert not watcher.over

    scheduler.accounts["id-a"] = (ended(), USAGE)

    assert End.DONE is steps(watcher).end
    assert USAGE == watcher.jobs[0].usage


def test_accounting_that_never_comes_ends_the_wait(make):
    """After the site's limit the job's own end marker decides."""
    watcher = make(FakeScheduler({"a": [running(), None]}, {}))
    finish(watcher)

    assert End.DONE is steps(watcher).end
    assert None is watcher.jobs[0].usage


@pytest.mark.parametrize("left", [True, False])
def test_without_accounting_it_ends_at_once(make, left):
    """`Slurm accounting storage is disabled` is no reason to wait, nor for a good word."""
    watcher = make(FakeScheduler({"a": [running(), None]}, None))
    if left:
        finish(watcher)

    assert (End.DONE if left else End.VANISHED) is steps(watcher, seconds=1.0).end


def test_a_job_that_vanished_has_failed(make):
    """No end marker, no account, nothing in the controller: failed, never good and never endless."""
    watcher = make(FakeScheduler({"a": [running(), None]}, {}))

    assert End.VANISHED is steps(watcher).end


def test_the_controller_is_asked_where_the_accounting_is_silent(make):
    """scontrol keeps an ended job for some minutes."""
    described = {"id-a": ended(Phase.OUT_OF_MEMORY, "OUT_OF_MEMORY")}
    watcher = make(FakeScheduler({"a": [running(), None]}, None, described))

    assert End.OUT_OF_MEMORY is steps(watcher).end


@pytest.mark.parametrize(
    ("phase", "word", "end"),
    [
        (Phase.TIMED_OUT, "TIMEOUT", End.TIMED_OUT),
        (Phase.OUT_OF_MEMORY, "OUT_OF_MEMORY", End.OUT_OF_MEMORY),
        (Phase.NODE_FAILED, "NODE_FAIL", End.NODE_FAILED),
        (Phase.PREEMPTED, "PREEMPTED", End.PREEMPTED),
        (Phase.CANCELLED, "CANCELLED by 54321", End.CANCELLED_BY_OTHERS),
        (Phase.FAILED, "FAILED", End.FAILED),
    ],
)
def test_each_bad_end_has_its_word_and_keeps_what_was_done(make, phase, word, end):
    """The accounting's state wins over a queue that says nothing more."""
    watcher = make(FakeScheduler({"a": [running(), None]}, {"id-a": (ended(phase, word), USAGE)}))
    finish(watcher, status=None, outcomes=("t::a",))

    ending = steps(watcher)

    assert end is ending.end
    assert "1 of 2 tests had left an outcome" in ending.sentence


@pytest.mark.parametrize("after", [ended(Phase.REQUEUED, "REQUEUED"), pending("BeginTime")])
def test_a_requeued_job_is_cancelled_and_has_its_own_word(make, after):
    """Whether it is seen in that state, or only waiting again after it ran."""
    scheduler = FakeScheduler({"a": [running(), after]}, {})

    assert End.REQUEUED is steps(make(scheduler)).end
    assert ["id-a"] == scheduler.cancelled


def test_a_second_start_between_two_looks_is_found_by_its_sign(make):
    """The script leaves a note when it is started twice."""
    watcher = make(FakeScheduler({"a": [running(), None]}, {"id-a": (ended(), USAGE)}))
    finish(watcher)
    (watcher.run.job("a").path / "started_again").touch()

    assert End.REQUEUED is steps(watcher).end


def test_one_empty_answer_is_no_end(make):
    """Just after a submission a queue may lack the job; an empty queue was read as `done` elsewhere."""
    scheduler = FakeScheduler({"a": [None, pending(), running(), ended()]}, {"id-a": (ended(), USAGE)})
    watcher = make(scheduler)
    watcher.step()
    finish(watcher)

    assert End.DONE is steps(watcher).end


def test_a_job_that_can_never_start_is_given_up_with_its_reason(make):
    """A dependency that never comes, or a partition that is too small, is no reason to wait for a day."""
    scheduler = FakeScheduler({"a": [pending("DependencyNeverSatisfied")]})

    ending = steps(make(scheduler))

    assert End.NEVER_RAN is ending.end
    assert "DependencyNeverSatisfied" in ending.sentence
    assert ["id-a"] == scheduler.cancelled


def test_a_job_that_waits_too_long_is_given_up(make, monkeypatch):
    """The site's limit for the queue holds, and the last reason is told."""
    watcher = make(FakeScheduler({"a": [pending("Priority")]}), more="pending_hours = 2.0")
    watcher.step()
    later = time.time() + 3 * 3600
    monkeypatch.setattr("perf.cluster.watching.time.time", lambda: later)

    ending = steps(watcher)

    assert End.NEVER_RAN is ending.end
    assert "waited for more than 2 h" in ending.sentence
    assert "Priority" in ending.sentence


def test_a_controller_that_is_restarted_is_waited_for(make):
    """Errors are said once, and nothing counts as gone meanwhile."""
    scheduler = FakeScheduler({"a": [running(), ended()]}, {"id-a": (ended(), USAGE)})
    watcher = make(scheduler)
    watcher.step()
    finish(watcher)
    scheduler.away = True
    for _ in range(5):
        watcher.clock.now += 15
        watcher.step()
    assert 1 == sum("does not answer" in said for said in watcher.said)
    scheduler.away = False

    assert End.DONE is steps(watcher).end
    assert "the scheduler answers again" in watcher.said


def test_a_controller_that_stays_away_leaves_the_jobs_alone_and_names_attach(make):
    """The jobs may go on: that is neither good nor bad, and can be followed later."""
    scheduler = FakeScheduler()
    watcher = make(scheduler)
    scheduler.away = True
    watcher.step()
    watcher.clock.now += UNANSWERED_SECONDS + 1

    with pytest.raises(Unanswered, match="attach"):
        watcher.step()
    assert None is watcher.jobs[0].ending


def test_a_refused_submission_fails_that_job_only(make):
    """The scheduler's words are the reason; the others are submitted."""
    scheduler = FakeScheduler({"b": [ended()]}, {"id-b": (ended(), USAGE)})
    scheduler.refuse["a"] = "sbatch: error: invalid partition specified: gpux"
    watcher = make(scheduler, "a", "b")
    finish(watcher, "b")
    steps(watcher)

    assert [End.NOT_SUBMITTED, End.DONE] == [followed.ending.end for followed in watcher.jobs]
    assert "invalid partition" in watcher.jobs[0].ending.sentence


def test_jobs_are_limited_at_once(make):
    """With --jobs 1 the second is submitted when the first has ended."""
    scheduler = FakeScheduler({"a": [running(), ended()], "b": [ended()]}, {})
    watcher = make(scheduler, "a", "b", most=1)
    finish(watcher)
    finish(watcher, "b")
    watcher.step()
    assert ["a"] == scheduler.submitted
    steps(watcher, 30)

    assert ["a", "b"] == scheduler.submitted


def test_ids_are_on_disk_at_once_and_another_watcher_goes_on(make):
    """A submitter that was killed loses nothing: what it knew is read back, and nothing is submitted twice."""
    scheduler = FakeScheduler({"a": [running(), ended()]}, {"id-a": (ended(), USAGE)})
    first = make(scheduler)
    first.step()
    assert "id-a" == first.run.job("a").submitted()[0]

    second = make(scheduler)
    finish(second)

    assert End.DONE is steps(second).end
    assert ["a"] == scheduler.submitted


def test_cancelling_ends_everything_with_the_reason(make):
    """What was submitted is cancelled with one command, what was not never ran."""
    scheduler = FakeScheduler({"a": [running()]})
    watcher = make(scheduler, "a", "b", most=1)
    watcher.step()
    watcher.step()

    assert ["id-a"] == watcher.cancel("Ctrl-C")
    assert ["id-a"] == scheduler.cancelled
    assert [End.CANCELLED, End.NEVER_RAN] == [followed.ending.end for followed in watcher.jobs]


def test_a_run_that_somebody_cancelled_from_another_shell_submits_no_more(make):
    """The note on disk tells the follower that it was us, and not somebody."""
    scheduler = FakeScheduler({"a": [running(), ended(Phase.CANCELLED, "CANCELLED by 0")]}, None)
    watcher = make(scheduler, "a", "b", most=1)
    watcher.step()
    watcher.run.note_cancelled("`cancel` by ada on login1")
    steps(watcher)

    assert ["a"] == scheduler.submitted
    assert all("ada on login1" in followed.ending.sentence for followed in watcher.jobs)


def test_one_question_a_step_whatever_happens(make):
    """The queue and the accounting take turns: a poll never costs the controller two commands."""
    names = [f"j{number}" for number in range(40)]
    plays = {
        name: [*itertools.repeat(pending(), number % 5), running(), ended()]
        for number, name in enumerate(names)
    }
    scheduler = FakeScheduler(plays, {})
    watcher = make(scheduler, *names)
    for name in names:
        finish(watcher, name)
    count = 0
    while not watcher.over:
        before = scheduler.queries + scheduler.asked_accounts
        watcher.step()
        count += 1
        assert scheduler.queries + scheduler.asked_accounts - before <= 1
        watcher.clock.now += 15
    assert count < 60
    assert all(followed.ending.good for followed in watcher.jobs)
