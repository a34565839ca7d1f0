"""Outcomes of pytest's own kind for verdicts that are neither pass nor fail, and the exit status of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from _pytest.outcomes import Skipped, XFailed

from perf.records import OutcomeRecord
from perf.verdict.outcome import Verdict

EXIT_FAILED = 1
EXIT_INCONCLUSIVE = 10
EXIT_INVALID = 11
EXIT_NOTHING_JUDGED = 12

LETTERS = {
    Verdict.INCONCLUSIVE: ("inconclusive", "?", "INCONCLUSIVE"),
    Verdict.INVALID: ("invalid", "!", "INVALID"),
    Verdict.UNREFERENCED: ("unreferenced", "u", "UNREFERENCED"),
}

INFRASTRUCTURE = "infrastructure"
"""What the attribute `verdict` of a report holds where a launch or a process gave nothing to judge."""


UNEXPECTED: pytest.StashKey[str] = pytest.StashKey()
"""Of a test that was expected to fail and passed: why it was."""


class LimitMissed(AssertionError):
    """A number is beyond its limit: an ordinary failure."""


class ExpectedMiss(XFailed):
    """A number that is beyond its limit, as a reference file said that it would be: pytest shows ``x``."""


class Unproven(Skipped):
    """Ends a test whose verdict is inconclusive, invalid or unreferenced.

    It is a skip to pytest, so that ``-x`` does not stop on it and JUnit shows no failure; the report carries the
    verdict as an attribute.
    """

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(f"{verdict}: {message}")
        self.verdict = verdict


MOST_TEXT = 20_000
"""Characters of a test's reason that are kept: an assertion with a long difference has no more to say at its end."""


def outcome_of(report: Any) -> OutcomeRecord:
    """Return what is kept of a test's report; the reason of a skip without pytest's path and line."""
    skipped = isinstance(report.longrepr, tuple)
    text = str(report.longrepr[2]).removeprefix("Skipped: ") if skipped else report.longreprtext
    return OutcomeRecord(
        test=report.nodeid,
        outcome=report.outcome,
        verdict=str(getattr(report, "verdict", None) or ""),
        seconds=float(report.duration),
        text=text[:MOST_TEXT],
    )


@dataclass
class Tally:
    """Counts the reports of perf tests, in the process that sets the exit status."""

    collected: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, report: Any) -> None:
        """Count one report of a perf test."""
        verdict = getattr(report, "verdict", None)
        if verdict in (INFRASTRUCTURE, Verdict.INVALID.value):
            self.counts["invalid"] += 1
        elif verdict in (Verdict.INCONCLUSIVE.value, Verdict.UNREFERENCED.value):
            self.counts[verdict] += 1
        elif hasattr(report, "wasxfail") and report.skipped:
            self.counts["expected"] += 1
        elif report.failed:
            self.counts["failed" if report.when == "call" else "invalid"] += 1
        elif report.when == "call" and report.passed:
            self.counts["passed"] += 1


TALLY: pytest.StashKey[Tally] = pytest.StashKey()
"""Where pytest's configuration has it."""


def exit_status(tally: Tally, status: int, *, smoke: bool) -> tuple[int, str]:
    """Return a run's exit status and, where it needs one, a sentence about it.

    Parameters
    ----------
    tally
        What the perf tests came to.
    status
        pytest's own status. 2 (interrupted), 3 (internal error) and 4 (usage) keep their meaning, except that
        xdist's 2 after ``-x`` on a failure is that failure.
    smoke
        Whether the profile is ``smoke``, where inconclusive counts as 0.
    """
    counts = tally.counts
    if status in (3, 4) or (status == 2 and not counts["failed"]):
        return status, ""
    if counts["failed"]:
        return EXIT_FAILED, ""
    if counts["invalid"]:
        return EXIT_INVALID, "Something was invalid, or a launch did not finish (exit status 11)."
    if counts["inconclusive"]:
        if smoke:
            return (
                0,
                f"{counts['inconclusive']} inconclusive: smoke is too short to decide, so it counts as 0 here.",
            )
        return (
            EXIT_INCONCLUSIVE,
            "Something is inconclusive: too noisy, or too few launches, for the question (exit status 10).",
        )
    if status == 1:
        # Something failed that is no perf test: a test beside them, or a plugin.
        return EXIT_FAILED, ""
    if counts["passed"] + counts["unreferenced"] + counts["expected"] == 0:
        return (
            EXIT_NOTHING_JUDGED,
            "Nothing was judged (exit status 12); the reasons stand with the skipped tests (-rs).",
        )
    return 0, ""
