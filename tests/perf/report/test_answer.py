from __future__ import annotations

import pytest

from perf.records import Event, OutcomeRecord
from perf.report.answer import Failure, answer, failures, problems
from perf.report.summary import summarize

FACTS = {
    "rank": 1,
    "host": "n1",
    "gpus": ["5fa5"],
    "status": "killed by signal 9 (SIGKILL)",
    "note": "In phase window.",
}


def outcome(test, result="passed", verdict="", text=""):
    return OutcomeRecord(test, result, verdict, 1.0, text)


def of(*verdicts, failed=(), outcomes=(), records=()):
    return answer(summarize(records, verdicts), failed, outcomes)


def test_a_pass_says_how_often_it_is_wrong_both_ways(verdict):
    """The sentence counts what was judged; the error rates stand beside it."""
    found = of(verdict(verdict="pass"), verdict(verdict="pass"))
    assert ("pass", "Yes: 2 of 2 limits are kept.") == (found.state, found.sentence)
    assert "at most 0.05 % of cases (2 judgements × 0.022 %)" in found.error_rates
    assert "passes in at most 5 of 100 judgements" in found.error_rates


def test_more_judgements_than_the_promise_holds_for_are_said(verdict):
    """46 judgements may fail by chance in more than 1 % of runs."""
    assert "more than 1 %" not in of(*[verdict(verdict="pass")] * 45).error_rates
    assert "more than 1 %" in of(*[verdict(verdict="pass")] * 46).error_rates


def test_the_worst_decides(verdict):
    """A missed limit or a wrong fact before what is invalid, that before what is undecided, as the exit status does."""
    (bad, invalid, open_) = (verdict(verdict=word, test=word) for word in ("fail", "invalid", "inconclusive"))
    lost = [Failure("g", "m", "l", "boom")]
    fact = [outcome("t::fact", "failed")]
    assert "No: 1 limit is missed and 1 exact fact is wrong." == of(bad, invalid, outcomes=fact).sentence
    assert "fail" == of(invalid, outcomes=fact, failed=lost).state
    assert (
        "invalid",
        "No answer: 1 judgement is invalid and 1 variant has a launch that did not finish.",
    ) == (
        of(invalid, open_, failed=lost).state,
        of(invalid, open_, failed=lost).sentence,
    )
    assert "inconclusive" == of(open_, verdict(verdict="pass")).state


@pytest.mark.parametrize("result", ["infrastructure", "invalid"])
def test_a_test_that_could_not_be_judged_is_no_pass(verdict, result):
    """Also where no judgement and no event tells of it."""
    assert "invalid" == of(verdict(verdict="pass"), outcomes=[outcome("t", "failed", result)]).state


def test_nothing_judged_is_not_a_pass(verdict):
    """A run of skips, and a run of numbers that are held against nothing, give no answer."""
    assert "nothing" == of(outcomes=[outcome("t", "skipped", text="needs 4 GPUs")]).state
    assert "nothing" == of(verdict(verdict="unreferenced", statistical=False)).state
    assert "1 test was not run" in of(outcomes=[outcome("t", "skipped")]).remarks[0]


def test_passed_facts_alone_are_a_pass():
    """Exact facts without statistics: no fail is due to noise."""
    found = of(outcomes=[outcome("t")])
    assert ("pass", "Yes: no limit was judged, 1 test passed.") == (found.state, found.sentence)
    assert "no fail can be due to noise" in found.error_rates


def test_a_run_without_outcomes_says_what_is_not_seen(verdict):
    """An older run kept no outcomes of tests."""
    assert any("tests.jsonl" in remark for remark in of(verdict(verdict="pass")).remarks)


def test_a_failed_limit_is_one_problem_and_no_wrong_fact(verdict):
    """The test that failed by its limit is known by its judgement; another that failed is an exact fact."""
    row = verdict(test="test_a[x]")
    outcomes = [
        outcome("perf/test_m.py::test_a[x]", "failed"),
        outcome("perf/test_m.py::test_b", "failed", text="3 != 4"),
    ]
    found = problems(summarize([], [row]), [], outcomes)
    assert [("fail", "test_a[x]"), ("fact", "perf/test_m.py::test_b")] == [(p.kind, p.title) for p in found]
    assert ["3 != 4"] == found[1].reasons
    assert all(problem.remedy for problem in found)
    assert "1.31 [1.24–1.38] ratio, limit 1.00, 10 launches a side" == found[0].numbers


def test_unreferenced_numbers_are_one_problem(verdict):
    """There is one remedy for all of them; each is named, those of one subject together, and each reason told once."""
    loose = [
        verdict(verdict="unreferenced", metric=metric, variant=variant, against="", reasons=[reason])
        for metric, variant, reason in (
            ("a", "v", "new"),
            ("b", "v", "new"),
            ("a", "w", "new"),
            ("c", "v", "old"),
        )
    ]
    found = problems(summarize([], loose), [], [])
    assert [("unreferenced", ["a, b of v; a of w: new", "c of v: old"])] == [
        (p.kind, p.reasons) for p in found
    ]


def test_problems_stand_worst_first(verdict, launch):
    """Whatever order they happened in; left-out launches are among what is invalid."""
    verdicts = [verdict(verdict=word) for word in ("unreferenced", "inconclusive", "fail", "pass")]
    found = problems(
        summarize([launch(valid=False, reasons=["hot"])], verdicts), [Failure("g", "m", "l", "boom")], []
    )
    assert ["fail", "launch", "invalid", "inconclusive", "unreferenced"] == [p.kind for p in found]
    assert ["1 × hot"] == found[2].reasons


def test_a_failed_launch_says_who_failed_first():
    """Rank, host and GPU, from the event; a message alone where nothing else is known."""
    known, bare = failures(
        [
            Event("start", 1.0),
            Event("failed", 2.0, "g", "m", "l", text="whole message", failure=FACTS),
            Event("failed", 3.0, text="first line\nmore"),
        ]
    )
    assert "rank 1 on n1, GPU 5fa5: killed by signal 9 (SIGKILL)" == known.headline
    assert "first line" == bare.headline
    (problem, _) = problems(summarize([], []), [known, bare], [])
    assert ["In phase window."] == problem.reasons
    assert "out-of-memory" in problem.remedy
