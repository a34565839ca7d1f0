"""The answer of a run in one sentence, and what needs one's attention: what failed, why, and what to do. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perf.records import Event, OutcomeRecord
from perf.report.loose import gathered
from perf.report.remedies import for_failure, for_verdict
from perf.report.summary import FALSE_FAIL_PER_JUDGEMENT, Account, Summary, VerdictRow
from perf.report.text import clean
from perf.verdict.outcome import Verdict

__all__ = ["WRONG_PASS", "Answer", "Failure", "Problem", "answer", "failures", "problems"]

WRONG_PASS = (
    "What is slower by its margin passes in at most 5 of 100 judgements; between no change and the margin either may "
    "come out."
)
"""The other error, as docs/trust.md promises it."""

_ORDER = ("fail", "fact", "launch", "invalid", "inconclusive", "unreferenced")


@dataclass(frozen=True)
class Failure:
    """A launch that gave no record. `facts` is empty where only the message is known."""

    group: str
    member: str
    launch: str
    message: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """Who failed first, where: 'rank 1 on n1, GPU-5fa5: killed by signal 9 (SIGKILL)'."""
        if not self.facts:
            return self.message.partition("\n")[0]
        rank = self.facts.get("rank")
        who = "no single rank" if rank is None else f"rank {rank}"
        gpus = self.facts.get("gpus") or []
        where = f" on {self.facts.get('host') or 'an unknown host'}" + (
            f", GPU {', '.join(gpus)}" if gpus else ""
        )
        return f"{who}{where}: {self.facts.get('status')}"


@dataclass(frozen=True)
class Problem:
    """One thing that is not a pass: its kind (see `_ORDER`), a title, numbers, reasons, and what to do."""

    kind: str
    title: str
    about: str = ""
    numbers: str = ""
    reasons: list[str] = field(default_factory=list)
    remedy: str = ""
    failure: Failure | None = None
    count: int = 1


@dataclass(frozen=True)
class Answer:
    """The head of a report. `state` is ``pass``, ``fail``, ``invalid``, ``inconclusive`` or ``nothing``."""

    state: str
    sentence: str
    error_rates: str
    remarks: list[str] = field(default_factory=list)


def failures(events: Sequence[Event]) -> list[Failure]:
    """Return the launches that gave no record, from a run's events."""
    return [
        Failure(event.group, event.member, event.launch, event.text, dict(event.failure))
        for event in events
        if event.kind == "failed"
    ]


def problems(summary: Summary, found: Sequence[Failure], outcomes: Sequence[OutcomeRecord]) -> list[Problem]:
    """List all that is not a pass, the worst first. A test that failed without a judgement failed on an exact fact."""
    loose = [row for row in summary.verdicts if row.verdict == Verdict.UNREFERENCED]
    listed = [
        _of_verdict(row)
        for row in summary.verdicts
        if row.verdict not in (Verdict.PASS, Verdict.UNREFERENCED)
    ]
    listed += [_of_loose(loose)] if loose else []
    listed += _of_facts(summary, outcomes)
    listed += [
        Problem(
            "launch",
            f"A launch of {clean(failure.member or failure.launch)} did not finish",
            clean(f"launch {failure.launch} in {failure.group}"),
            clean(failure.headline),
            [clean(note)] if (note := failure.facts.get("note")) else [],
            for_failure(failure.facts.get("status") or failure.message),
            failure,
        )
        for failure in found
    ]
    listed += [
        Problem(
            "invalid",
            f"{row.invalid} of {row.invalid + row.launches} launches of {clean(row.variant)} left out",
            clean(f"plan {row.plan} in {row.group}"),
            "",
            [f"{count} × {clean(reason)}" for reason, count in row.reasons.items()],
            for_verdict("invalid", ""),
        )
        for row in summary.variants
        if row.invalid
    ]
    return sorted(
        listed, key=lambda problem: _ORDER.index(problem.kind) if problem.kind in _ORDER else len(_ORDER)
    )


def answer(summary: Summary, found: Sequence[Failure], outcomes: Sequence[OutcomeRecord]) -> Answer:
    """Say in one sentence what a run came to, worst first as the exit status does, and how often that is wrong."""
    counts = Counter(summary.account.counts)
    failed, facts = counts[Verdict.FAIL], len(_of_facts(summary, outcomes))
    invalid = counts[Verdict.INVALID] + sum(o.verdict == "invalid" for o in _unjudged(summary, outcomes))
    unfinished = len({(failure.group, failure.member) for failure in found})
    broken = sum(o.verdict == "infrastructure" for o in outcomes)
    judged, passed = (
        summary.account.judgements,
        sum(row.statistical and row.verdict == Verdict.PASS for row in summary.verdicts),
    )
    facts_kept = sum(o.outcome == "passed" for o in outcomes)
    remarks = _remarks(counts, outcomes)
    if failed or facts:
        parts = [_count(failed, "limit is missed", "limits are missed")] if failed else []
        parts += [_count(facts, "exact fact is wrong", "exact facts are wrong")] if facts else []
        return Answer("fail", f"No: {' and '.join(parts)}.", _rates(summary.account), remarks)
    if invalid or unfinished or broken:
        parts = [_count(invalid, "judgement is invalid", "judgements are invalid")] if invalid else []
        parts += (
            [
                _count(
                    unfinished,
                    "variant has a launch that did not finish",
                    "variants have launches that did not finish",
                )
            ]
            if unfinished
            else []
        )
        parts += (
            [_count(broken, "test could not be judged", "tests could not be judged")]
            if broken and not unfinished
            else []
        )
        return Answer("invalid", f"No answer: {' and '.join(parts)}.", _rates(summary.account), remarks)
    if counts[Verdict.INCONCLUSIVE]:
        undecided = _count(counts[Verdict.INCONCLUSIVE], "judgement is", "judgements are")
        return Answer(
            "inconclusive",
            f"Not decided: {undecided} inconclusive, too noisy or too few launches for the question; "
            f"{passed} of {judged} passed.",
            _rates(summary.account),
            remarks,
        )
    if not judged and not facts_kept:
        return Answer("nothing", "Nothing was judged.", _rates(summary.account), remarks)
    kept = f"{passed} of {judged} limits are kept" if judged else "no limit was judged"
    if facts_kept:
        kept += f", {_count(facts_kept, 'test', 'tests')} passed"
    return Answer("pass", f"Yes: {kept}.", _rates(summary.account), remarks)


def _rates(account: Account) -> str:
    """Say how often the answer is wrong, both ways."""
    if not account.judgements:
        return "No judgement by statistics: no fail can be due to noise."
    percent = math.ceil(account.false_fail * 1e4 - 1e-6) / 100
    of = _count(account.judgements, "judgement", "judgements")
    text = (
        f"If nothing had changed, a run like this would fail by chance in at most {percent:.2f} % of cases "
        f"({of} × {100 * FALSE_FAIL_PER_JUDGEMENT:g} %). {WRONG_PASS}"
    )
    return f"{text} That is more than 1 %: doubt a single fail." if account.too_many else text


def _remarks(counts: Counter[str], outcomes: Sequence[OutcomeRecord]) -> list[str]:
    remarks = []
    loose = counts[Verdict.UNREFERENCED]
    if loose:
        remarks.append(
            f"{_count(loose, 'measurement has', 'measurements have')} nothing to be held against (unreferenced): "
            "not a pass."
        )
    skipped = sum(outcome.outcome == "skipped" and not outcome.verdict for outcome in outcomes)
    if skipped:
        remarks.append(f"{_count(skipped, 'test was', 'tests were')} not run; the reasons are below.")
    if not outcomes:
        remarks.append(
            "This run kept no outcomes of tests (tests.jsonl), so exact facts that were wrong would not be seen here."
        )
    return remarks


def _of_verdict(row: VerdictRow) -> Problem:
    about = f"{row.metric} of {row.subject} in {row.group}"
    limit = "" if row.limit is None else f", limit {row.limit_text}"
    sides = "" if not row.launches else f", {row.launches} launches" + (" a side" if row.against else "")
    return Problem(
        row.verdict,
        clean(row.test),
        clean(about),
        clean(f"{row.estimate_text}{limit}{sides}"),
        [clean(text) for text in (*row.reasons, row.diagnosis) if text],
        for_verdict(row.verdict, row.metric),
    )


def _of_loose(rows: Sequence[VerdictRow]) -> Problem:
    """Put what is held against nothing into one problem: there is one remedy for all of it."""
    title = _count(len(rows), "measurement has", "measurements have") + " nothing to be held against"
    return Problem(
        "unreferenced",
        title,
        "measured, and not judged",
        "",
        [clean(f"{loose.what}: {loose.why}") for loose in gathered(rows)],
        for_verdict("unreferenced", ""),
    )


def _of_facts(summary: Summary, outcomes: Sequence[OutcomeRecord]) -> list[Problem]:
    """Return the tests that failed without a judgement that says so."""
    return [
        Problem(
            "fact",
            clean(outcome.test),
            "an exact fact, without statistics",
            "",
            [clean(outcome.text, keep_lines=True)],
            for_verdict("fact", ""),
        )
        for outcome in _unjudged(summary, outcomes)
        if outcome.outcome == "failed" and not outcome.verdict
    ]


def _unjudged(summary: Summary, outcomes: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
    """Return the outcomes of tests that left no judgement other than a pass."""
    told = {row.test.rpartition("::")[2] for row in summary.verdicts if row.verdict != Verdict.PASS}
    return [outcome for outcome in outcomes if outcome.test.rpartition("::")[2] not in told]


def _count(count: int, one: str, many: str) -> str:
    return f"1 {one}" if count == 1 else f"{count} {many}"
