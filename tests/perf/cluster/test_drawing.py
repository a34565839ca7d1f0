"""What a person sees while jobs wait and run."""

from __future__ import annotations

import io

from fake_scheduler import ended, pending, running
from rich.console import Console

from perf.cluster.drawing import HEARTBEAT_SECONDS, ROWS, Drawing, lines
from perf.cluster.folders import JobFolder
from perf.cluster.jobs import Job
from perf.cluster.proof import End, Ending
from perf.cluster.watching import Followed


def job(name, tmp_path, **more) -> Followed:
    """Return a followed job."""
    facts = Job(
        name=name, nodes=1, gpus=1, cores=1, exclusive=True, planned_seconds=1.0, seconds=600, node_ids=["t"]
    )
    followed = Followed(facts, JobFolder(tmp_path / name))
    for key, value in more.items():
        setattr(followed, key, value)
    return followed


def test_each_state_has_its_line(tmp_path):
    """Where and since when, why not yet, or how it ended; those that are done stand last."""
    jobs = [
        job("d", tmp_path, id="1", ending=Ending(End.DONE, "Finished.", 0)),
        job("r", tmp_path, id="2", seen=running("n7"), submitted=0.0),
        job("p", tmp_path, id="3", seen=pending("Priority"), submitted=40.0),
        job("e", tmp_path, id="4", seen=ended(), over_since=1.0),
        job("n", tmp_path),
    ]

    r, p, e, n, d, total = lines(jobs, 100.0)

    assert "running" in r
    assert "on n7 for 1 min 39 s of 10 min 00 s" in r
    assert "for 1 min 00 s: Priority" in p
    assert "its end is looked up" in e
    assert "not submitted" in n
    assert "Finished." in d
    assert "5 jobs: 1 done, 1 running, 1 pending, 1 ended, 1 not submitted" == total


def test_a_hundred_jobs_fit_a_terminal(tmp_path):
    """Those that are not shown are counted."""
    jobs = [job(f"j{number}", tmp_path, id="1") for number in range(100)]

    drawn = lines(jobs, 0.0)

    assert ROWS + 2 == len(drawn)
    assert "and 80 more" == drawn[-2]


def test_in_a_pipe_each_change_is_a_line_and_silence_is_broken(tmp_path):
    """Cron's mail has no control characters, and says now and then that it goes on."""
    now = [1000.0]
    out = io.StringIO()
    jobs = [job("a", tmp_path, id="1")]
    with Drawing(Console(file=out, highlight=False), lambda: jobs, lambda: now[0]) as drawing:
        drawing.say("a: submitted\x1b[2J [bold]x[/bold]")
        drawing.tick()
        now[0] += HEARTBEAT_SECONDS
        drawing.tick()

    first, second = out.getvalue().splitlines()
    assert "[bold]x[/bold]" in first
    assert "\x1b" not in out.getvalue()
    assert "1 jobs: 1 submitted" in second
