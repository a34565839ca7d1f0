"""``python -m perf.cluster --site=FILE …``: submit, follow, merge, judge. Or show what would be submitted."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from perf import records
from perf.cluster import fleet
from perf.cluster.folders import RunFolder
from perf.cluster.following import USAGE, FollowedElsewhere, follow, output_console, watching
from perf.cluster.jobs import Job, Plan, plan_facts
from perf.cluster.scheduler import SchedulerError
from perf.cluster.sites import Site, SiteError, load_site
from perf.cluster.submitting import (
    CollectionFailed,
    Wish,
    check_site_here,
    driver_command,
    job_script,
    make_submission,
    plan_jobs,
    prepare_run,
    scheduler_for,
)
from perf.machine import REPOSITORY
from perf.profiles import PROFILES, Profile
from perf.report.text import clean, duration
from perf.whole import whole

NOTHING_JUDGED = 12
FAILED = 11


def main(words: Sequence[str]) -> int:
    """Submit and follow; return the run's exit status."""
    options, rest = parser().parse_known_args(list(words))
    if "--plan" in rest:
        print(
            "stackproof: --plan is of a run here; what would be submitted is shown by --dry-run",
            file=sys.stderr,
        )
        return USAGE
    try:
        if options.here:
            return _here(options, rest)
        site = load_site(options.site)
        stack = options.stack or _only_stack(site)
        check_site_here(site, stack)
        own = [f"--profile={options.profile}", f"--device={_device(options.device, options.profile, site)}"]
        plan = _planned(options, rest, own, site, stack)
        scheduler = scheduler_for(site)
        # One device at a time on this machine: without a scheduler jobs would measure each other.
        most = 1 if site.scheduler.kind == "local" else options.jobs or site.scheduler.jobs
        submission = make_submission(
            options.run_name or records.new_run_name(),
            site,
            stack,
            [*own, *Wish.of(rest).arguments],
            plan,
            most,
            "each-node" if options.each_node is not None else "confirm-on" if options.confirm_on else "",
        )
        results = Path(options.results).absolute()
        if options.dry_run:
            run = RunFolder(results / submission.run)
            scripts = {
                job.name: job_script(job, run.job(job.name), submission, scheduler) for job in plan.jobs
            }
            return show(plan, scripts, as_json=options.json)
        if not plan.jobs:
            show(plan, {}, as_json=False)
            print("nothing is submitted: no test can run at this site (exit status 12)", file=sys.stderr)
            return NOTHING_JUDGED
        run = prepare_run(results, submission, site, scheduler)
        console = output_console()
        console.print(
            f"run {submission.run}: {len(plan.jobs)} jobs, files in {run.path}", markup=False, soft_wrap=True
        )
        with watching(run):
            return follow(run, submission, site, scheduler, console)
    except CollectionFailed as error:
        print(f"stackproof: {error}", file=sys.stderr)
        return error.status
    except SiteError as error:
        print(f"stackproof: {error}", file=sys.stderr)
        return USAGE
    except (SchedulerError, FollowedElsewhere, OSError) as error:
        print(f"stackproof: {error}", file=sys.stderr)
        return FAILED


def parser() -> argparse.ArgumentParser:
    """Return the parser of stackproof's own options; the others are pytest's."""
    found = argparse.ArgumentParser(
        prog="python -m perf.cluster",
        description="Run the suite as jobs. Every other option is pytest's: -k, -m, -x, --launches, --line-profile ...",
        epilog="attach RUN, cancel RUN and status RUN work from another shell, whenever.",
        allow_abbrev=False,
    )
    add = found.add_argument
    add("--site", required=True, metavar="FILE", help="site file (docs/sites.md; examples in docs/sites/)")
    add("--stack", metavar="NAME", help="the site's stack to test (needed where it has several)")
    add("--profile", choices=sorted(PROFILES), default="quick", help="how much runs (default: quick)")
    add(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="what to measure (default: GPUs, where nodes have any)",
    )
    add(
        "--results",
        default="results",
        metavar="DIR",
        help="where runs are kept, on a file system that all nodes see",
    )
    add("--jobs", type=int, default=0, metavar="N", help="at most so many jobs at once (default: the site's)")
    add("--dry-run", action="store_true", help="show jobs, GPU hours, limits and scripts; submit nothing")
    add("--json", action="store_true", help="with --dry-run: for scripts")
    add("--here", action="store_true", help="run in the allocation that this shell is in; submit nothing")
    add(
        "--each-node",
        nargs="?",
        const="",
        default=None,
        metavar="NODES",
        help="the same tests on every node (or on NODE,NODE...): names outliers",
    )
    add("--confirm-on", metavar="NODE", help="run on this node only, to confirm what another one showed")
    add("--run-name", help=argparse.SUPPRESS)
    return found


def _only_stack(site: Site) -> str:
    if len(site.stacks) != 1:
        known = "|".join(site.stacks) or "none: add a table [stacks.NAME]"
        raise SiteError(f"{site.path}: name the stack to test: --stack={known}")
    return next(iter(site.stacks))


def _device(asked: str, profile: str, site: Site) -> str:
    if asked != "auto":
        return asked
    return "cuda" if site.node.gpus and profile != "smoke" else "cpu"


def _planned(
    options: argparse.Namespace, rest: Sequence[str], own: Sequence[str], site: Site, stack: str
) -> Plan:
    plan = plan_jobs(Wish.of(rest), site, stack, _profile(options, rest), own[1].partition("=")[2], None, own)
    if options.each_node is not None:
        named = [node for node in options.each_node.split(",") if node]
        return fleet.on_each(plan, named or scheduler_for(site).hosts())
    return fleet.on_each(plan, [options.confirm_on]) if options.confirm_on else plan


def _profile(options: argparse.Namespace, rest: Sequence[str]) -> Profile:
    """Return the profile with the launches and windows that are asked for; pytest itself refuses what is no number."""
    profile = PROFILES[options.profile]
    if "--stalls" in rest:
        profile = profile.with_stalls()
    for previous, word in zip(["", *rest], rest, strict=False):
        launches = whole(
            word.partition("=")[2]
            if word.startswith("--launches=")
            else word
            if previous == "--launches"
            else ""
        )
        if launches:
            profile = profile.with_launches(launches)
    return profile


def _here(options: argparse.Namespace, rest: Sequence[str]) -> int:
    """Become pytest, in the allocation that this process is in. Returns only if that fails."""
    site = load_site(options.site)
    wish = Wish.of(rest)
    words = [
        *driver_command(),
        *wish.targets,
        f"--site={site.path}",
        f"--stack={options.stack or _only_stack(site)}",
        f"--profile={options.profile}",
        f"--device={options.device}",
        f"--results={Path(options.results).absolute()}",
        *wish.arguments,
    ]
    sys.stdout.flush()
    os.chdir(REPOSITORY)
    os.execv(words[0], words)  # noqa: S606 - no shell is what is wanted


def show(plan: Plan, scripts: dict[str, str], *, as_json: bool) -> int:
    """Print a plan: jobs with GPU hours and limits, tests that are left out, and the scripts."""
    if as_json:
        print(json.dumps({**plan_facts(plan), "scripts": scripts}, indent=2))
        return 0
    for job in plan.jobs:
        print(clean(describe(job)))
    planned = sum(job.gpu_hours_planned for job in plan.jobs)
    most = sum(job.gpu_hours_most for job in plan.jobs)
    print(f"{len(plan.jobs)} jobs: {planned:.1f} GPU hours planned, {most:.1f} at most")
    for reason, number in Counter(plan.left_out.values()).most_common():
        print(clean(f"{number} tests left out: {reason}"))
    for name, text in scripts.items():
        print(f"\n# ---- {name}\n{clean(text, keep_lines=True)}", end="")
    return 0


def describe(job: Job) -> str:
    """Return a job in one line."""
    where = f" on {job.hold_to}" if job.hold_to else ""
    share = "whole nodes" if job.exclusive else "shared nodes"
    return (
        f"{job.name}: {job.nodes} x ({job.gpus} GPUs, {job.cores} cores){where}, {share}; {len(job.node_ids)} tests; "
        f"planned {duration(job.planned_seconds)}, limit {duration(job.seconds)}; "
        f"{job.gpu_hours_planned:.1f} GPU hours planned, {job.gpu_hours_most:.1f} at most"
    )
