from __future__ import annotations

from types import SimpleNamespace

import pytest

from perf.suite.outcomes import INFRASTRUCTURE, MOST_TEXT, Tally, Unproven, exit_status, outcome_of
from perf.verdict.outcome import Verdict


def report(when="call", outcome="passed", **attributes):
    return SimpleNamespace(when=when, failed=outcome == "failed", passed=outcome == "passed", **attributes)


def tally(*reports):
    found = Tally()
    for one in reports:
        found.add(one)
    return found


PASSED = report()
FAILED = report(outcome="failed")
INCONCLUSIVE = report(outcome="skipped", verdict="inconclusive")
INVALID = report(outcome="skipped", verdict="invalid")
UNREFERENCED = report(outcome="skipped", verdict="unreferenced")
NO_LAUNCH = report(when="setup", outcome="failed", verdict=INFRASTRUCTURE)
NO_LAUNCH_IN_CALL = report(outcome="failed", verdict=INFRASTRUCTURE)
FIXTURE = report(when="setup", outcome="failed")
SKIPPED = report(when="setup", outcome="skipped")


@pytest.mark.parametrize(
    ("reports", "status", "expected"),
    [
        ([PASSED], 0, 0),
        ([PASSED, UNREFERENCED], 0, 0),
        ([UNREFERENCED], 0, 0),
        ([PASSED, FAILED], 1, 1),
        ([FAILED, INVALID, INCONCLUSIVE], 1, 1),
        ([PASSED, INVALID, INCONCLUSIVE], 0, 11),
        ([PASSED, NO_LAUNCH], 1, 11),
        ([PASSED, NO_LAUNCH_IN_CALL], 1, 11),
        ([PASSED, FIXTURE], 1, 11),
        ([PASSED, INCONCLUSIVE], 0, 10),
        ([SKIPPED], 0, 12),
        ([], 5, 12),
        ([PASSED], 1, 1),
        ([FAILED], 2, 1),
        ([PASSED], 2, 2),
        ([PASSED], 3, 3),
        ([], 4, 4),
    ],
)
def test_the_first_that_applies_gives_the_exit_status(reports, status, expected):
    """1 failed, 11 invalid or no launch, 10 inconclusive, 12 nothing judged, 0; pytest's 2, 3 and 4 stay."""
    assert expected == exit_status(tally(*reports), status, smoke=False)[0]


def test_smoke_counts_inconclusive_as_0_and_says_so():
    """In smoke an inconclusive verdict does not fail the run, but it is never silent."""
    status, sentence = exit_status(tally(PASSED, INCONCLUSIVE), 0, smoke=True)

    assert 0 == status
    assert "1 inconclusive" in sentence


def test_smoke_still_fails_on_facts_and_broken_launches():
    """Only inconclusive is forgiven in smoke."""
    assert 1 == exit_status(tally(FAILED, INCONCLUSIVE), 1, smoke=True)[0]
    assert 11 == exit_status(tally(INVALID, INCONCLUSIVE), 0, smoke=True)[0]


def test_every_status_but_pass_comes_with_a_sentence():
    """A status that pytest's users do not know is explained."""
    for reports in ([INVALID], [INCONCLUSIVE], [SKIPPED]):
        assert exit_status(tally(*reports), 0, smoke=False)[1]


def test_an_unproven_outcome_is_a_skip_to_pytest_and_names_its_verdict():
    """`Unproven` is caught like a skip, and its message begins with the verdict."""
    with pytest.raises(pytest.skip.Exception, match="^inconclusive: too noisy$"):
        raise Unproven(Verdict.INCONCLUSIVE, "too noisy")


def told(longrepr, **attributes):
    return SimpleNamespace(
        nodeid="t.py::x",
        outcome="failed",
        duration=1.5,
        longrepr=longrepr,
        longreprtext=str(longrepr),
        **attributes,
    )


def test_what_is_kept_of_a_test_is_its_reason():
    """A skip's own words without pytest's path, a failure's text, the suite's verdict; a very long text is cut."""
    kept = outcome_of(told(("path", 3, "Skipped: needs 4 GPUs")))
    assert ("t.py::x", "failed", "", 1.5, "needs 4 GPUs") == (
        kept.test,
        kept.outcome,
        kept.verdict,
        kept.seconds,
        kept.text,
    )
    assert "invalid" == outcome_of(told("boom", verdict="invalid")).verdict
    assert MOST_TEXT == len(outcome_of(told("x" * (2 * MOST_TEXT))).text)
