from __future__ import annotations

import dataclasses
import json
import sys

import pytest

from perf.faults.catalogue import FAULTS
from perf.faults.selfcheck import __main__ as command
from perf.faults.selfcheck.__main__ import SelfCheck, main
from perf.faults.selfcheck.carry import Where
from perf.faults.selfcheck.plan import Plan, Step
from perf.faults.selfcheck.results import Clean, Results, Row
from perf.launch.stack import Stack
from perf.records import Run


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Return a function that runs a self-check of some faults, each of which comes to what is given."""

    def run(outcomes, *, clean=1, limit=None, left_out=()):
        def carry(fault, where):
            found = outcomes[fault.name]
            if isinstance(found, Exception):
                raise found
            return found

        class Judge:
            def judge(self, number):
                return Clean(number, "loader_share", "pass", 5, 1.0)

        monkeypatch.setattr(command, "carry", carry)
        monkeypatch.setattr(command, "cleaner_of", lambda *ignored: Judge())
        planned = Plan(tuple(Step(FAULTS[name], clean) for name in outcomes), dict(left_out))
        where = Where(Stack("own", sys.executable, {}), "cpu", tmp_path, 2, "/cache")
        results = SelfCheck(Run(tmp_path), where, planned, limit).run_all()
        return results, json.loads((tmp_path / "selfcheck.json").read_text())

    return run


def test_the_file_holds_counts_and_a_row_a_fault(check):
    """Caught and named, and what was left out with its reason; the machine's load stands with it."""
    row = Row("rank-killed", carried=True, caught=True, named=True, by="the launch fails", said="killed")
    results, file = check({"rank-killed": row}, clean=2, left_out={"unpinned": "acts on a GPU"})

    assert results.good
    assert (1, 1, 1, 2, 0) == tuple(
        file[key] for key in ("planted", "caught", "named", "clean_runs", "false_alarms")
    )
    assert {"unpinned": "acts on a GPU", "rank-killed": ""} == {
        fault["name"]: fault["why_not"] for fault in file["faults"]
    }
    assert file["machine"]["load_average"]


def test_a_fault_that_can_t_be_planted_ends_nothing(check):
    """It is not caught, says why, and the next one is planted all the same."""
    good = Row("rank-killed", carried=True, caught=True, named=True)
    results, _ = check({"one-core": OSError("no such call"), "rank-killed": good})

    assert not results.good
    assert "could not be planted: OSError('no such call')" in {row.said for row in results.rows}
    assert 1 == results.counts()["caught"]


def test_nothing_is_begun_when_the_time_is_over(check):
    """What was not begun is not called caught: it says that there was no time."""
    results, _ = check({"rank-killed": Row("rank-killed", carried=True)}, limit=-1.0)

    assert ([False], []) == ([row.carried for row in results.rows], list(results.clean))
    assert "not begun within" in results.rows[0].why_not


def test_a_slip_of_the_finger_gets_the_right_name(capsys):
    """Misuse ends with 4 and the nearest fault."""
    assert 4 == main(["slow-rnk"])
    assert "slow-rank" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--clean", "-1"], "error: --clean -1: expected a number of judgements, 0 or more\n"),
        (["--seconds=-5"], "error: --seconds -5: expected seconds above 0\n"),
        (["--seconds=0"], "error: --seconds 0: expected seconds above 0\n"),
        (["--seconds=nan"], "error: --seconds nan: expected seconds above 0\n"),
        (["--seconds=inf"], "error: --seconds inf: expected seconds above 0\n"),
    ],
)
def test_numbers_that_can_t_be_meant_are_misuse(words, said, capsys):
    """One line and the status of misuse, before a stack is looked for."""
    assert (4, said) == (main([*words, "--stack=/nowhere/python", "--dry-run"]), capsys.readouterr().err)


def test_the_plan_can_be_seen_without_a_launch(capsys, monkeypatch):
    """Each fault with who must catch it, and why the others are not planted."""
    monkeypatch.setattr(command, "find_stack", lambda *ignored: Stack("own", sys.executable, {"gpus": []}))
    assert 0 == main(["--dry-run"])
    said = capsys.readouterr().out

    assert "precision-dropped: the launch fails; then" in said
    assert "unpinned: not planted: acts on a GPU" in said


def test_gpus_that_are_not_there_are_said_so(capsys, monkeypatch):
    """Nothing is planted on a device that the stack does not see."""
    monkeypatch.setattr(command, "find_stack", lambda *ignored: Stack("own", "/s/python", {"gpus": []}))

    assert 4 == main(["--device", "cuda"])
    assert "the torch of /s/python sees no GPU" in capsys.readouterr().err


def test_the_table_is_printed_from_a_file(tmp_path, capsys):
    """The page's table comes from a check's own file; another file is an error."""
    path = tmp_path / "selfcheck.json"
    row = Row("one-core", carried=True, caught=True, named=True, seconds=8.0)
    path.write_text(Results({}, [row], [], 1.0).text())
    assert 0 == main(["--table", str(path)])
    assert "| caught and named, 8 s |" in capsys.readouterr().out

    later = tmp_path / "later.json"
    rows = [dataclasses.replace(row, seconds=9.0), Row("rank-killed", carried=False, why_not="no time")]
    later.write_text(Results({}, rows, [], 1.0).text())
    assert 0 == main(["--table", str(path), str(later)])
    said = capsys.readouterr().out
    assert "| caught and named, 9 s |" in said
    assert "8 s" not in said

    path.write_text("{}")
    assert 4 == main(["--table", str(path)])
