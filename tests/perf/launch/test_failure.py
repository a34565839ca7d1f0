from __future__ import annotations

import copy
import json
import pickle

import pytest

from perf.launch.evidence import GOOD, Evidence, RankEvidence
from perf.launch.failure import LaunchFailed, diagnose, sentence, state_of, succeeded
from perf.launch.progress import Progress
from perf.launch.stacks import Dump, Frame

BARRIER = (Dump(True, (Frame("/s/torch/distributed/distributed_c10d.py", 9, "barrier"),)),)
HOOK = (
    Dump(
        True, (Frame("/r/loop.py", 31, "train", "    time.sleep(9)\n"), Frame("/r/worker.py", 83, "<module>"))
    ),
)


def evidence(*ranks, **changes):
    """Return the evidence of a DDP launch whose torchrun ended with status 1; keywords replace fields."""
    fields = {
        "launch": "0007",
        "variant": "v-2cpu",
        "host": "n1",
        "direct": False,
        "time_limit": 60.0,
        "agent_exit": 1,
    }
    return Evidence(ranks=ranks, **{"out_dir": "/o", **fields, **changes})


def test_the_message_of_a_killed_rank_in_full():
    """Sentence, hint, log and the other rank's state, in this order."""
    error = diagnose(
        evidence(
            RankEvidence(0, exit_code=-15, ended_by_us=True, phase="window"),
            RankEvidence(
                1, exit_code=-9, phase="window", log=("one", "two"), log_path="/o/logs/1/stderr.log"
            ),
        )
    )
    expected = """\
Launch 0007 of v-2cpu on n1: rank 1 was killed by signal 9 (SIGKILL).
  In phase window. Nothing here sent that signal. Mostly it is the kernel's out-of-memory killer: \
look at the job's memory limit and at `dmesg`.
  Last lines of rank 1 (/o/logs/1/stderr.log):
    | one
    | two
  The other ranks:
    rank 0: was running, in phase window, until it was ended with the rest
  All files: /o"""
    assert expected == str(error)
    assert ("0007", "v-2cpu", 1, "n1", "killed by signal 9 (SIGKILL)") == (
        error.launch,
        error.variant,
        error.rank,
        error.host,
        error.status,
    )


def test_the_message_of_a_hang_in_full():
    """Each rank's phase, since when, and its innermost frames."""
    error = diagnose(
        evidence(
            RankEvidence(0, ended_by_us=True, phase="window", phase_time=90.0, dumps=BARRIER),
            RankEvidence(1, ended_by_us=True, phase="warm-up", phase_time=70.0, dumps=HOOK),
            agent_exit=None,
            timed_out=True,
            ended=100.0,
        )
    )
    expected = """\
Launch 0007 of v-2cpu on n1: rank 1 ran past its time limit of 60 s while in phase warm-up.
  Every other rank that was left waits for it.
  What each rank was doing, innermost frame first:
    rank 0: in phase window for 10 s, waits for the others
      /s/torch/distributed/distributed_c10d.py:9 in barrier
    rank 1: in phase warm-up for 30 s
      /r/loop.py:31 in train: time.sleep(9)
      /r/worker.py:83 in <module>
  Rank 1 wrote nothing to its log.
  The other ranks:
    rank 0: was running, in phase window, until it was ended with the rest
  All files: /o"""
    assert expected == str(error)


@pytest.mark.parametrize(
    ("taken", "words"), [(0, ", waits for the others, took no step in 6 s"), (1, ", took 1 step in 6 s")]
)
def test_steps_near_the_limit_are_told_of_each_rank(taken, words):
    """A rank that took none may wait; of one that took some it is not said, wherever it stands."""
    ranks = [
        RankEvidence(rank, ended_by_us=True, phase="window", dumps=BARRIER, progress=Progress(9, taken, 6.0))
        for rank in range(2)
    ]
    lines = str(diagnose(evidence(*ranks, agent_exit=None, timed_out=True))).splitlines()
    assert f"    rank 1: in phase window{words}" in lines


def test_a_killed_torchrun_is_the_subject_of_its_sentence():
    """Its own log is shown, and every rank's state."""
    ranks = [RankEvidence(rank, ended_by_us=True, phase="data") for rank in range(2)]
    message = str(diagnose(evidence(*ranks, agent_exit=-9, agent_log=("last words",))))
    assert "n1: torchrun was killed by signal 9 (SIGKILL)." in message
    assert "Last lines of torchrun:\n    | last words" in message
    assert "  The ranks:\n    rank 0: was running" in message


def test_processes_that_outlive_sigkill_are_told():
    """A process that is stuck in the kernel blocks the card for the next launch."""
    message = str(diagnose(evidence(RankEvidence(0, exit_code=1), survivors=(41, 42))))
    assert "Processes 41, 42 outlived SIGKILL" in message


def test_names_and_paths_are_made_harmless():
    """Whatever a variant, host or path is called, the terminal is not driven by it."""
    error = diagnose(
        evidence(
            RankEvidence(0, exit_code=1), launch="\x1b[2J", variant="v\r", host="h\x07", out_dir="/o\n/x"
        )
    )
    assert not set(str(error)) & set("\x1b\r\x07")
    assert r"All files: /o\x0a/x" in str(error)


def test_the_error_survives_pickling_and_copying():
    """Xdist and process pools carry errors between processes."""
    error = diagnose(evidence(RankEvidence(0, exit_code=3)))
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert isinstance(twin, LaunchFailed)
        assert (str(error), vars(error)) == (str(twin), vars(twin))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("exit status 3", "rank 1 ended with exit status 3"),
        ("killed by signal 9 (SIGKILL)", "rank 1 was killed by signal 9 (SIGKILL)"),
        ("ended by the clean-up", "rank 1 was ended by the clean-up"),
        ("ran past its time limit of 2 s", "rank 1 ran past its time limit of 2 s"),
        (
            "ended with exit status 0 and wrote no record",
            "rank 1 ended with exit status 0 and wrote no record",
        ),
    ],
)
def test_subject_and_status_make_a_sentence(status, expected):
    """Each kind of status takes its verb."""
    assert expected == sentence("rank 1", status)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (RankEvidence(0, record=GOOD, exit_code=0), "done, its record is good"),
        (
            RankEvidence(0, exit_code=0, phase="data"),
            "ended with exit status 0 and wrote no record, in phase data",
        ),
        (
            RankEvidence(0, exit_code=1, log=("Connection reset by peer",)),
            "exit status 1, before its first phase; its log says that another rank had gone",
        ),
    ],
)
def test_each_state_of_another_rank_has_its_words(rank, expected):
    """Done, silent and victim are told apart."""
    assert expected == state_of(rank)


def test_a_launch_succeeded_only_with_exit_status_0_and_every_record():
    """Either alone is not enough, nor is an end by the clean-up."""
    good, bad = RankEvidence(0, record=GOOD), RankEvidence(1)
    assert succeeded(evidence(good, agent_exit=0))
    assert not succeeded(evidence(good, bad, agent_exit=0))
    assert not succeeded(evidence(good, agent_exit=1))
    assert not succeeded(evidence(good, agent_exit=None))


def test_the_facts_say_who_failed_first_and_what_the_others_did():
    """Rank, host, GPU, log and the other rank's state, as JSON holds it; harmless; they survive pickling."""
    error = diagnose(
        evidence(
            RankEvidence(0, exit_code=-15, ended_by_us=True, phase="window", gpus=("aa",)),
            RankEvidence(1, exit_code=-9, phase="window", log=("one",), log_path="/o/log", gpus=("bb",)),
            host="n\x1b1",
        )
    )
    assert {
        "launch": "0007",
        "variant": "v-2cpu",
        "host": r"n\x1b1",
        "rank": 1,
        "gpus": ["bb"],
        "status": "killed by signal 9 (SIGKILL)",
        "phase": "in phase window",
        "log": ["one"],
        "log_path": "/o/log",
        "others": [
            {
                "rank": 0,
                "gpus": ["aa"],
                "state": "was running, in phase window, until it was ended with the rest",
            }
        ],
        "folder": "/o",
    } == {name: value for name, value in error.facts.items() if name != "note"}
    assert "  It worked on GPU bb." in str(error).splitlines()
    assert error.facts == pickle.loads(pickle.dumps(error)).facts
    assert error.facts == json.loads(json.dumps(error.facts))


def test_facts_of_no_single_rank_have_torchruns_log():
    """Where torchrun itself was killed, no rank and no GPU is named."""
    error = diagnose(evidence(RankEvidence(0, ended_by_us=True), agent_exit=-9, agent_log=("agent says",)))
    assert (None, [], ["agent says"]) == (error.facts["rank"], error.facts["gpus"], error.facts["log"])
