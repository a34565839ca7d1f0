from __future__ import annotations

import subprocess
import sys

import pytest

from perf.faults.catalogue import FAULTS
from perf.faults.selfcheck import carry as carrying
from perf.faults.selfcheck.carry import Where, carry, command, member_of, spec_of, times_detectable
from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.stack import Stack


@pytest.fixture
def where(tmp_path):
    return Where(Stack("own", "/stack/bin/python", {"torch": "2.0"}), "cpu", tmp_path, 2, "/cache")


@pytest.fixture
def launched(monkeypatch):
    """Return a list that takes each launch's environment, and a function that says what launches come to."""
    seen = []

    def answer(outcome):
        def launch(spec, stack, *, lock, environ):
            seen.append(environ)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(carrying, "launch", launch)
        return seen

    return answer


def test_a_launch_that_fails_in_the_right_words_is_caught_and_named(where, launched):
    """The row holds the words that named it, on one line; the fault was in the launch's environment."""
    seen = launched(
        LaunchFailed("Launch 1: rank 1 was killed by signal 9 (SIGKILL).\n  Mostly the out-of-memory killer")
    )
    row = carry(FAULTS["rank-killed"], where)

    assert (True, True) == (row.caught, row.named)
    assert row.said == "rank 1 was killed by signal 9 (SIGKILL). Mostly the out-of-memory"
    assert "rank-killed" == seen[0]["STACKPROOF_PLANT"]


@pytest.mark.parametrize(
    ("name", "outcome", "caught"),
    [
        ("rank-killed", LaunchFailed("it failed somehow"), True),
        ("rank-killed", NotAvailable("no such precision"), False),
        ("one-core", LaunchFailed("it failed somehow"), False),
    ],
)
def test_another_end_than_the_expected_one_names_nothing(where, launched, name, outcome, caught):
    """A failure in other words is caught and not named; one of another kind than expected is not even that."""
    launched(outcome)
    row = carry(FAULTS[name], where)

    assert (caught, False) == (row.caught, row.named)
    assert str(outcome) == row.said


def test_a_launch_that_is_good_in_spite_of_its_fault_is_not_caught(where, launched, make_record):
    """A valid record means that nobody noticed; an invalid one that says why was noticed."""
    launched(make_record())
    assert not carry(FAULTS["one-core"], where).caught

    reason = "2 cores were promised on n1 (threads need 2), but the ranks may use 1."
    launched(make_record(valid=False, reasons=[reason]))
    row = carry(FAULTS["one-core"], where)
    assert (True, True, reason) == (row.caught, row.named, row.said)


def test_what_was_said_is_made_safe(where, launched):
    """A log may hold anything, and a row is printed."""
    launched(LaunchFailed("rank 1 killed by signal 9 (SIGKILL) \x1b[2J out-of-memory"))

    assert "\x1b" not in carry(FAULTS["rank-killed"], where).said


def test_a_setting_that_is_dropped_was_asked_for(where):
    """The spec asks for it, on as many ranks as the fault needs, in a folder of its own."""
    spec = spec_of(FAULTS["precision-dropped"], where)
    assert ("bf16", 1) == (spec.precision, spec.world_size)
    assert 2 == spec_of(FAULTS["rank-killed"], where).world_size
    assert spec.out_dir == str(where.folder / "precision-dropped" / "launch")


@pytest.mark.parametrize("name", [f.name for f in FAULTS.values() if f.gpu and f.of_a_launch])
def test_a_fault_of_gpus_is_planted_in_a_variant_of_as_many(name):
    """One GPU, or two that talk."""
    assert FAULTS[name].ranks == member_of(FAULTS[name]).variant.gpus


def test_an_inner_run_is_by_fork_and_small_on_the_cpu(where):
    """Its results lie in the fault's own folder, and of its tests only the one that must catch the fault runs."""
    words = command(FAULTS["slow-decode"], where, [])

    assert [sys.executable, "-m", "pytest", "perf"] == words[:4]
    assert {"--small", "--share-node"} <= set(words)
    for option, value in (("--plant", "slow-decode"), ("--launcher", "fork"), ("--launches", "7")):
        assert value == words[words.index(option) + 1]
    assert "test_loader_share_is_within_its_limit and mnist_cnn and cpu" == words[-1]


def test_a_comparison_has_the_same_stack_on_both_sides(where):
    """Only the fault sets the new one apart."""
    words = command(FAULTS["device-time-5"], where, [])

    assert words[words.index("--against") + 1] == words[words.index("--stack") + 1] == "/stack/bin/python"


@pytest.mark.parametrize(("status", "caught"), [(1, True), (0, False), (10, False), (11, False)])
def test_only_the_expected_exit_status_is_a_catch(where, monkeypatch, status, caught):
    """A run that passed, could not tell or broke caught nothing."""
    latest = where.folder / "slow-decode" / "latest"
    latest.mkdir(parents=True)
    (latest / "tests.jsonl").write_text(
        '{"outcome":"failed","text":"loader\'s share of a step: 0.9"}\n{"outcome'
    )
    (latest / "verdicts.jsonl").write_text(
        '{"verdict":"fail","unit":"share","estimate":0.9,"limit":0.55,"detectable":0.1}\n'
    )
    monkeypatch.setattr(
        carrying.subprocess,
        "run",
        lambda words, **rest: subprocess.CompletedProcess(words, status, "out\n", ""),
    )
    row = carry(FAULTS["slow-decode"], where)

    assert (caught, caught) == (row.caught, row.named)
    assert 5.98 == row.size
    assert "out\n" == (latest / "output.txt").read_text()


OF_STACKS = {"verdict": "fail", "against": "mnist_cnn-single-1gpu-fp32-native@old"}


@pytest.mark.parametrize(
    ("verdict", "size"),
    [
        ({"verdict": "fail", "unit": "ratio", "estimate": 3.0, "limit": 2.0, "detectable": 0.25}, 2.0),
        ({"verdict": "fail", "unit": "share", "estimate": 0.8, "limit": 0.5, "detectable": 0.1}, 4.11),
        (OF_STACKS | {"unit": "ratio", "estimate": 1.21, "limit": 1.02, "detectable": 0.1}, 2.0),
        (OF_STACKS | {"unit": "share", "estimate": 0.03, "limit": 0.01, "detectable": 0.006}, 5.0),
        ({"verdict": "pass", "unit": "ratio", "estimate": 1.0, "limit": 2.0, "detectable": 0.25}, None),
        ({"verdict": "fail", "unit": "ratio", "estimate": 3.0, "limit": 2.0, "detectable": None}, None),
        ({"verdict": "fail", "unit": "ratio", "estimate": 3.0, "limit": 2.0, "detectable": 0.0}, None),
    ],
)
def test_the_size_of_a_fault_is_in_what_could_be_seen(verdict, size):
    """Relative beyond a limit, by the steps' ratio for a share; the change of one stack to the next; else unknown."""
    assert size == times_detectable(verdict)
