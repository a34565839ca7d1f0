from __future__ import annotations

import json

import pytest

from perf.faults.selfcheck.results import BadResults, Clean, Results, Row, read

CAUGHT = Row("a", carried=True, caught=True, named=True, by="the launch fails", said="x", seconds=9.0)
MISSED = Row("b", carried=True, by="the launch fails", said="nothing of the kind")
UNNAMED = Row("c", carried=True, caught=True, by="the launch fails", said="died")
ABSENT = Row("d", carried=False, why_not="needs a GPU")


def clean(number, verdict="pass"):
    return Clean(number, "loader_share", verdict, 5, 30.0, [f"it is {verdict}"])


def test_the_counts_are_those_of_the_rows():
    """What was not carried counts nowhere; only what was caught can be named."""
    found = Results({}, [CAUGHT, MISSED, UNNAMED, ABSENT], [clean(1), clean(2, "inconclusive")], 60.0)

    assert {
        "planted": 3,
        "caught": 2,
        "named": 1,
        "clean_runs": 2,
        "false_alarms": 0,
        "clean_inconclusive": 1,
    } == found.counts()


@pytest.mark.parametrize("verdict", ["fail", "invalid", "failed"])
def test_a_clean_judgement_that_alarms_is_no_good(verdict):
    """A fail, an invalid launch and one that died alike are false alarms; noise is not."""
    assert Results({}, [CAUGHT], [clean(1, "inconclusive")], 1.0).good
    assert not Results({}, [CAUGHT], [clean(1, verdict)], 1.0).good


@pytest.mark.parametrize("rows", [[], [ABSENT], [CAUGHT, MISSED], [CAUGHT, UNNAMED]])
def test_a_check_that_missed_or_planted_nothing_is_no_good(rows):
    """Nothing planted is not a success."""
    assert not Results({}, rows, [], 1.0).good


def test_the_file_is_read_back():
    """What is written is JSON with the counts in front, and reads back as it was."""
    found = Results({"host": "n1"}, [CAUGHT, ABSENT], [clean(1)], 60.0)
    text = found.text()

    assert 1 == json.loads(text)["planted"]
    assert found == read(text, "selfcheck.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "faults": [{"x": 1}]}'])
def test_another_file_is_an_error_with_its_name(text):
    """Whatever is wrong, the message says where."""
    with pytest.raises(BadResults, match="some.json"):
        read(text, "some.json")


def test_the_terminal_is_told_what_went_wrong_and_then_the_counts():
    """Each miss has its line with what was said instead, a fault that was planted too small is named."""
    weak = Row("e", carried=True, caught=True, named=True, size=1.2)
    lines = Results({}, [CAUGHT, MISSED, UNNAMED, ABSENT, weak], [clean(1, "fail")], 61.0).lines()

    assert "b: not caught: nothing of the kind" in lines
    assert "c: caught, but not named: died" in lines
    assert "d: not planted: needs a GPU" in lines
    assert "clean 1: fail: it is fail" in lines
    assert "planted at less than 1.5 times what could be seen: e" in lines
    assert lines[-1].startswith(
        "4 faults planted, 3 caught, 2 of them named; 1 clean judgements, 1 false alarms"
    )
