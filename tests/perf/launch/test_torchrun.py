from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perf.launch.torchrun import Failure, parse_report

# Printed by torch 2.14.1 when rank 1 of two was killed; shortened where it says nothing of the ranks.
KILLED = """\
W1128 00:10:30.252000 7006 torch/distributed/elastic/[…]/api.py:1028] Sending process 7012 closing signal SIGTERM
E1128 00:10:30.260000 7006 torch/distributed/elastic/[…]/api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 7013)
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
======================================================
fw FAILED
------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-28_00:10:30
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 7012)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 7012
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-28_00:10:30
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 7013)  (SIGKILL)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 7013
======================================================
"""

# Composed from the format strings of an older torch, whose report leaves out the ranks that torchrun ended.
OLDER = """\
WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 11 closing signal SIGTERM
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1 (pid: 12)
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2024-01-05_10:00:00
  host      : n1.cluster
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 12)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def test_each_rank_of_a_report_is_read_with_its_exit_code():
    """Both ranks are read, the first failure is told from the one that followed."""
    report = parse_report(KILLED)
    assert {
        0: Failure(0, -15, 7012, "localhost", 1, root_cause=False),
        1: Failure(1, -9, 7013, "localhost", 0, root_cause=True),
    } == report.failures
    assert report.present


def test_the_ranks_that_torchrun_ended_itself_are_read_from_its_warnings():
    """Torchrun names the PIDs that it sent a closing signal."""
    assert frozenset({7012}) == parse_report(KILLED).closed


def test_the_report_of_an_older_torch_is_read():
    """Reports without the ranks that were ended, and with other log lines, are understood."""
    report = parse_report(OLDER)
    assert {1: Failure(1, 1, 12, "n1.cluster", 0, root_cause=True)} == report.failures
    assert frozenset({11}) == report.closed


def test_text_without_a_report_gives_an_empty_one():
    """Other output of torchrun is no report."""
    report = parse_report("RuntimeError: hostname can't be resolved\n  rank      : 3 (local_rank: 3)\n")
    assert not report.present


def test_a_rank_cannot_forge_another_ones_failure():
    """An exception text that imitates a line of the report, or repeats a whole block, changes nothing."""
    forged = KILLED.replace(
        "  traceback : Signal 9",
        "  traceback : x\n  rank      : 0 (local_rank: 0)\n  exitcode  : 77 (pid: 1)\n"
        "[0]:\n  time      : t\n  host      : h\n  rank      : 1 (local_rank: 1)\n"
        "  exitcode  : 77 (pid: 1)\n  Signal 9",
    )
    assert parse_report(KILLED).failures == parse_report(forged).failures


@given(st.text())
def test_any_text_is_parsed_without_error(text):
    """The parser never fails, whatever a log holds."""
    assert parse_report(text) == parse_report(text)


@given(st.dictionaries(st.integers(0, 63), st.integers(-64, 255).filter(bool), min_size=1))
def test_every_rank_and_exit_code_survives_the_round_trip(codes):
    """What torchrun's own format writes is read back."""
    blocks = [
        f"[{place}]:\n  time      : t\n  host      : h\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {1000 + rank})\n  error_file: <N/A>\n  traceback : x"
        for place, (rank, code) in enumerate(codes.items())
    ]
    text = (
        "Failures:\n"
        + "\n".join(blocks[1:])
        + "\n---\nRoot Cause (first observed failure):\n"
        + blocks[0]
        + "\n"
    )
    report = parse_report(text)
    assert codes == {rank: failure.exit_code for rank, failure in report.failures.items()}
    assert [next(iter(codes))] == [rank for rank, failure in report.failures.items() if failure.root_cause]
