"""``python -m perf.cluster.overhead``: what it costs the submitter to submit, follow and merge many jobs.

The scheduler is a set of shell scripts that answer in the form of a Slurm 22.05 and count how often they are asked;
each job leaves the records of a real run. All of the rest is what runs at a site: the same commands started, the same
files read and written. Prints one line of JSON. CPU seconds are those of this process and of the commands it starts.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from perf.cluster.following import follow
from perf.cluster.jobs import Job, Plan
from perf.cluster.sites import parse_site
from perf.cluster.slurm import Slurm
from perf.cluster.submitting import make_submission, prepare_run
from perf.ending import finish
from perf.machine import REPOSITORY
from perf.records import new_run_name
from perf.report.console import make_console

RECORDED = REPOSITORY / "docs" / "measurements" / "2026-11-28-h100-whole" / "records.jsonl"

SITE = """\
[scheduler]
kind = "slurm"
poll_seconds = {poll}
[node]
cores = 16
gpus = 1
[stacks.any]
"""

# Every job runs for `seconds` and a little more than the one before it, so that their ends are spread.
SBATCH = """\
#!/bin/bash
echo "sbatch $(date +%s.%N)" >>"$FAKE/asked"
id=$(($(cat "$FAKE/last" 2>/dev/null || echo 0) + 1))
echo "$id" >"$FAKE/last"
echo "$(($(date +%s) + SECONDS_EACH + id / 4)) $(dirname "${@: -1}")" >"$FAKE/job-$id"
echo "$id"
"""
SQUEUE = """\
#!/bin/bash
echo "squeue $(date +%s.%N)" >>"$FAKE/asked"
now=$(date +%s)
for word in "$@"; do case "$word" in --jobs=*) ids=${word#--jobs=} ;; esac; done
for id in ${ids//,/ }; do
    read -r end folder <"$FAKE/job-$id"
    if ((now < end)); then echo "$id|RUNNING|2026-11-28T06:41:36|n1|None"; else
        if [ ! -e "$folder/exit_code" ]; then
            mkdir -p "$folder/started"
            cp "$FAKE/records" "$folder/records.jsonl"
            cp "$FAKE/tests" "$folder/tests.jsonl"
            echo "$now" >"$folder/started/at"
            echo "0 $now " >"$folder/exit_code"
        fi
        echo "$id|COMPLETED|2026-11-28T06:41:36|n1|None"
    fi
done
"""
SACCT = """\
#!/bin/bash
echo "sacct $(date +%s.%N)" >>"$FAKE/asked"
for word in "$@"; do case "$word" in --jobs=*) ids=${word#--jobs=} ;; esac; done
at=2026-11-28T06:41:36
for id in ${ids//,/ }; do
    echo "$id|COMPLETED|0:0|60|00:05:00|16|||64000M|cpu=16,gres/gpu=1,mem=64000M|n1|$at|$at"
    echo "$id.batch|COMPLETED|0:0|60|00:05:00|16|1|4000M||cpu=16|n1|$at|$at"
done
"""


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; return the run's exit status, which is 0."""
    parser = argparse.ArgumentParser(prog="python -m perf.cluster.overhead", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, metavar="N", help="jobs (default: 100)")
    parser.add_argument(
        "--launches", type=int, default=20, metavar="N", help="launches that each leaves (default: 20)"
    )
    parser.add_argument(
        "--poll", type=float, default=15.0, metavar="S", help="between two polls (default: 15)"
    )
    parser.add_argument(
        "--seconds", type=int, default=30, metavar="S", help="what the first job takes (default: 30)"
    )
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="stackproof-overhead-") as folder:
        status, facts = measure(Path(folder), options.jobs, options.launches, options.poll, options.seconds)
    print(json.dumps(facts))
    return status


def measure(
    root: Path, jobs: int, launches: int, poll: float, seconds: int
) -> tuple[int, dict[str, float | int]]:
    """Run so many jobs with the fake commands below `root`; return the exit status and the figures."""
    fake = root / "fake"
    fake.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("sacct", SACCT)):
        (fake / name).write_text(text, encoding="utf-8")
        (fake / name).chmod(0o755)
    name = new_run_name()
    with (fake / "records").open("w", encoding="utf-8") as records:
        for line in RECORDED.read_text(encoding="utf-8").splitlines()[:launches]:
            records.write(json.dumps({**json.loads(line), "run": name}) + "\n")
    (fake / "tests").write_text(json.dumps({"test": "t", "outcome": "passed"}) + "\n", encoding="utf-8")
    os.environ |= {"PATH": f"{fake}:{os.environ['PATH']}", "FAKE": str(fake), "SECONDS_EACH": str(seconds)}
    site_file = root / "site.toml"
    site_file.write_text(SITE.format(poll=poll), encoding="utf-8")
    site = parse_site(site_file.read_text(encoding="utf-8"), str(site_file))
    plan = Plan(
        [
            Job(
                name=f"job-{number:03d}",
                nodes=1,
                gpus=1,
                cores=16,
                exclusive=True,
                planned_seconds=60.0,
                seconds=600,
                node_ids=["t"],
            )
            for number in range(jobs)
        ]
    )
    before, started = _cpu_seconds(), time.monotonic()
    scheduler = Slurm(site)
    submission = make_submission(name, site, "any", [], plan, 0)
    run = prepare_run(root / "results", submission, site, scheduler)
    with open(root / "output", "w", encoding="utf-8") as output:
        status = follow(run, submission, site, scheduler, make_console(output))
    own, commands = (after - first for after, first in zip(_cpu_seconds(), before, strict=True))
    asked = [line.split() for line in (fake / "asked").read_text(encoding="utf-8").splitlines()]
    queries = [float(moment) for name, moment in asked if name != "sbatch"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(queries)]
    facts: dict[str, float | int] = {
        "jobs": jobs,
        "records": len((run.path / "records.jsonl").read_bytes().splitlines()),
        "wall_seconds": round(time.monotonic() - started, 1),
        "own_cpu_seconds": round(own, 2),
        "commands_cpu_seconds": round(commands, 2),
        "submissions": len(asked) - len(queries),
        "queries": len(queries),
        "shortest_gap_seconds": round(min(gaps, default=0.0), 1),
    }
    shutil.rmtree(run.path)
    return status, facts


def _cpu_seconds() -> tuple[float, float]:
    """Return the CPU seconds of this process and of its ended children."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


if __name__ == "__main__":
    finish(main)
