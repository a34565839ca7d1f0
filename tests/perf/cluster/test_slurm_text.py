"""What Slurm's commands print: recorded from a Slurm 22.05.8 where nothing else is said."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perf.cluster.scheduler import Phase
from perf.cluster.slurm_text import (
    PHASES,
    SACCT_FIELDS,
    parse_asked_memory,
    parse_duration,
    parse_exit,
    parse_sacct,
    parse_scontrol,
    parse_size,
    parse_squeue,
    parse_time,
    phase_of,
)


@pytest.mark.parametrize(
    ("word", "phase"),
    [
        ("CANCELLED by 54321", Phase.CANCELLED),
        ("CANCELLED+", Phase.CANCELLED),
        ("OUT_OF_MEMORY", Phase.OUT_OF_MEMORY),
        ("OUT_OF_ME+", Phase.OUT_OF_MEMORY),
        ("NODE_FAIL", Phase.NODE_FAILED),
        ("REQUEUE_HOLD", Phase.REQUEUED),
        ("TIMEOUT", Phase.TIMED_OUT),
        ("COMPLETING", Phase.RUNNING),
        ("SOMETHING_NEW", Phase.UNKNOWN),
        ("", Phase.UNKNOWN),
    ],
)
def test_a_state_has_its_phase(word, phase):
    """Also where sacct adds who did it, or cuts it."""
    assert phase is phase_of(word)


@pytest.mark.parametrize(
    "word", [w for w, phase in PHASES.items() if phase is Phase.COMPLETED or not phase.ended]
)
def test_only_completed_counts_as_completed(word):
    """No state but COMPLETED is taken for a good end."""
    assert (word == "COMPLETED") == (phase_of(word) is Phase.COMPLETED)


def test_squeue_gives_jobs_with_reason_place_and_start():
    """A banner is passed over, reasons may hold spaces and bars, and a planned start is no start."""
    text = (
        "Welcome to the cluster!\n"
        "12|PENDING|2026-11-28T09:00:00||(Nodes required | are DOWN, DRAINED)\n"
        "13|RUNNING|2026-11-28T06:41:36|n[1-2]|None\n"
        "14|PENDING|N/A||DependencyNeverSatisfied\n"
    )

    found = parse_squeue(text)

    assert ["12", "13", "14"] == list(found)
    assert ("(Nodes required | are DOWN, DRAINED)", None) == (found["12"].reason, found["12"].started)
    assert (Phase.RUNNING, "n1,n2", "") == (found["13"].phase, found["13"].nodes, found["13"].reason)
    assert "06:41:36" == time.strftime("%H:%M:%S", time.localtime(found["13"].started))
    assert "DependencyNeverSatisfied" == found["14"].reason


SUBMITTED = "2026-11-28T06:00:00"
SACCT = f"""\
41|COMPLETED|0:0|95|00:02:31|4|||4000M|billing=4,cpu=4,gres/gpu=4,mem=8000M,node=2|n[1-2]|{SUBMITTED}|2026-11-28T06:00:30
41.batch|COMPLETED|0:0|95|00:01.500|2|1|2100K||cpu=2,mem=4000M,node=1|n1|2026-11-28T06:00:30|2026-11-28T06:00:30
41.extern|COMPLETED|0:0|95|00:00:00|4|2|0||cpu=4|n[1-2]|2026-11-28T06:00:30|2026-11-28T06:00:30
41.0|COMPLETED|0:0|60|00:02:29|4|2|1024M||cpu=4|n[1-2]|2026-11-28T06:00:40|2026-11-28T06:00:40
42|CANCELLED by 54321|0:0|0|00:00:00|4|||4000M||None assigned|{SUBMITTED}|Unknown
43|FAILED|0:0|5|00:00:00|4|||4000M|cpu=4,mem=8000M|n1|{SUBMITTED}|2026-11-28T06:00:01
44|REQUEUED|0:0|5|00:00:00|4|||4000M|cpu=4,mem=8000M|n1|{SUBMITTED}|2026-11-28T06:00:01
44|RUNNING|0:0|5|00:00:00|4|||4000M|cpu=4,mem=8000M|n2|2026-11-28T06:00:05|2026-11-28T06:00:09
sacct: note of a site's wrapper
"""


def test_sacct_gives_state_and_what_was_used():
    """CPU time over cores, the largest step's memory times its tasks, GPUs, nodes and the time in the queue."""
    seen, usage = parse_sacct(SACCT)["41"]

    assert (Phase.COMPLETED, 0, 0, "n1,n2") == (seen.phase, seen.status, seen.signal, seen.nodes)
    assert (95.0, 151.0, 4, 4) == (usage.wall_seconds, usage.cpu_seconds, usage.cores, usage.gpus)
    assert 151.0 / (95.0 * 4) == usage.cpu_efficiency
    assert 2 * 2**30 == usage.peak_memory_bytes
    assert 2 * 2**30 / (8000 * 2**20) == usage.memory_efficiency
    assert 30.0 == usage.queue_seconds


def test_sacct_says_who_cancelled_and_keeps_the_last_start():
    """A cancelled job that never ran has no times of 0, and a requeued one its newest line."""
    found = parse_sacct(SACCT)

    assert (Phase.CANCELLED, "by user number 54321") == (found["42"][0].phase, found["42"][0].reason)
    assert (None, None, None) == (
        found["42"][1].queue_seconds, found["42"][1].peak_memory_bytes, found["42"][1].gpus,
    )  # fmt: skip
    assert (Phase.FAILED, 0, 0) == (found["43"][0].phase, found["43"][0].status, found["43"][0].signal)
    assert (Phase.RUNNING, "n2") == (found["44"][0].phase, found["44"][0].nodes)
    assert 0 == found["43"][1].gpus


def test_scontrol_gives_state_and_exit():
    """One line of key=value pairs, values without spaces."""
    text = (
        "JobId=7 JobName=x UserId=root(0) Priority=4294901758 JobState=FAILED Reason=NonZeroExitCode Dependency=(null) "
        "Requeue=0 Restarts=0 BatchFlag=1 ExitCode=75:0 StartTime=2026-11-28T06:41:36 NodeList=n1 NumNodes=1"
    )

    seen = parse_scontrol(text + "\nslurmctld is busy\n")["7"]

    assert (Phase.FAILED, "NonZeroExitCode", "n1", 75, 0) == (
        seen.phase, seen.reason, seen.nodes, seen.status, seen.signal,
    )  # fmt: skip
    assert {} == parse_scontrol("slurm_load_jobs error: Invalid job id specified")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:02.500", 2.5), ("01:00:00", 3600.0), ("1-00:00:01", 86401.0), ("", None), ("INVALID", None)],
)
def test_durations(text, seconds):
    """With and without days, hours and fractions; what is none is not known."""
    assert seconds == parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("2053M", 2053 * 2**20), ("415.5K", 425472), ("1024", 1024), ("0", 0), ("", None), ("16?", None)],
)
def test_sizes(text, size):
    """An empty MaxRSS, of a step that ended before it was sampled, is not 0."""
    assert size == parse_size(text)


def test_memory_that_was_asked_for_before_21_08():
    """``c`` is for each core and ``n`` for each node."""
    assert (4000 * 2**20, 8 * 2**30, 4000 * 2**20) == (
        parse_asked_memory("4000Mn", 4), parse_asked_memory("2Gc", 4), parse_asked_memory("4000M", None),
    )  # fmt: skip
    assert None is parse_asked_memory("2Gc", None)


words = st.text(st.sampled_from("0129¹٣.:-+KMGT =/|eE\n"), max_size=400) | st.text(max_size=30)
lines = st.lists(words | st.just("|" * 12), max_size=5)


@given(lines)
@example(["¹"])
@example(["9" * 400 + "K"])
def test_any_text_is_survived(parts):
    """Whatever a site's wrapper prints, parsing raises nothing."""
    text = "\n".join(parts)
    parse_squeue(text)
    parse_sacct(text)
    parse_sacct("1" + "|".join(parts[:1] * len(SACCT_FIELDS)))
    parse_scontrol(text)
    parse_exit(text)
    parse_time(text)
    parse_duration(text)
    parse_asked_memory(text, 1)
