"""What a report's page holds, from stored runs: computed here, written by `perf.report.page`. Reads line profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perf.contract import LaunchRecord
from perf.report.answer import Answer, Problem, answer, failures, problems
from perf.report.figures.account import account_picture
from perf.report.figures.comparison import differences, environment_table, runs_forest, stacks_table
from perf.report.figures.explained import Explained, explained
from perf.report.figures.launches import Side, by_group, letter, sides
from perf.report.figures.model import Section, Table
from perf.report.figures.questions import sections
from perf.report.lines import ProfileError, TrainProfile, launch_profiles, loader_share
from perf.report.samples import Sampled, read_samples
from perf.report.stored import StoredRun
from perf.report.summary import Summary, environment_lines, summarize
from perf.report.text import clean

__all__ = ["Contents", "Profile", "Skipped", "gather"]


@dataclass(frozen=True)
class Profile:
    """The line profiles of one launch, or why they can't be shown. `shares` are the loader's, by rank."""

    variant: str
    launch: str
    ranks: list[TrainProfile]
    shares: list[float | None]
    trouble: str = ""


@dataclass(frozen=True)
class Skipped:
    """Tests that did not run for one reason."""

    reason: str
    tests: list[str]


@dataclass(frozen=True)
class Contents:
    """A page. `runs` pairs a letter (empty for a single run) with the run's folder; `differs` is for several runs."""

    runs: list[tuple[str, Path]]
    header: list[str]
    answer: Answer
    problems: list[Problem]
    summary: Summary
    sections: list[Section]
    profiles: list[Profile]
    skipped: list[Skipped]
    environment: Table
    differs: Table | None
    notes: list[str] = field(default_factory=list)
    stacks: Table | None = None
    explained: list[Explained] = field(default_factory=list)


def gather(runs: Sequence[StoredRun]) -> Contents:
    """Put together what the page of some runs holds: one run, or several beside each other.

    Raises
    ------
    ValueError
        If there is no run.
    """
    if not runs:
        raise ValueError("a report needs a run")
    records = [record for run in runs for record in run.records]
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    summary = summarize(records, [verdict for run in runs for verdict in run.verdicts])
    failed = failures([event for run in runs for event in run.events])
    found = sides(records, _letters(runs))
    sampled = [one for run in runs for one in read_samples(run.records, run.folder)]
    environments = {f"run {letter(place)}": run.environment for place, run in enumerate(runs)}
    return Contents(
        runs=[(letter(place) if len(runs) > 1 else "", run.folder) for place, run in enumerate(runs)],
        header=[clean(line) for line in [*environment_lines(runs[-1].environment), *summary.data]],
        answer=answer(summary, failed, outcomes),
        problems=problems(summary, failed, outcomes),
        summary=summary,
        sections=_sections(records, found, summary, sampled),
        profiles=[profile for run in runs for profile in _profiles(run)],
        skipped=_skipped(runs),
        environment=environment_table(environments),
        differs=differences(environments) if len(runs) > 1 else None,
        notes=[clean(note) for run in runs for note in run.notes],
        stacks=stacks_table(runs[-1].environment) if len(runs) == 1 else None,
        explained=explained([found for run in runs for found in run.explanations]),
    )


def _letters(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Return the letter of each run's name in the records: a folder may hold the joined records of several jobs."""
    found: dict[str, str] = {}
    for place, run in enumerate(runs):
        for record in run.records:
            found.setdefault(record.run, letter(place))
    return found if len(runs) > 1 else {}


def _sections(
    records: Sequence[LaunchRecord], found: Sequence[Side], summary: Summary, sampled: Sequence[Sampled]
) -> list[Section]:
    """Return the questions' sections, with the comparison of runs before and the account of time behind them."""
    listed = sections(records, by_group(found), summary, sampled)
    runs = runs_forest(found)
    if runs is not None:
        intro = "The same variants in the runs of this page."
        listed.insert(0, Section("runs", "Run against run", intro, [runs]))
    account = account_picture(summary.time, summary.held)
    if account is not None:
        listed.append(Section("account", "Time of the run", "What the wall time was spent on.", [account]))
    return listed


def _profiles(run: StoredRun) -> list[Profile]:
    found = []
    for record in run.records:
        if not record.line_profiles:
            continue
        variant, launch = clean(record.variant), clean(record.launch)
        try:
            ranks = launch_profiles(record, run.folder)
        except ProfileError as error:
            found.append(Profile(variant, launch, [], [], clean(str(error))))
            continue
        found.append(Profile(variant, launch, ranks, [_share(rank) for rank in ranks]))
    return found


def _share(profile: TrainProfile) -> float | None:
    try:
        return loader_share(profile)
    except ProfileError:
        return None


def _skipped(runs: Sequence[StoredRun]) -> list[Skipped]:
    """Return the tests that did not run, by reason, the most frequent first."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for outcome in run.outcomes:
            if outcome.outcome == "skipped" and not outcome.verdict:
                reasons.setdefault(clean(outcome.text), []).append(clean(outcome.test))
    rows: list[Any] = sorted(reasons.items(), key=lambda item: -len(item[1]))
    return [Skipped(reason, tests) for reason, tests in rows]
