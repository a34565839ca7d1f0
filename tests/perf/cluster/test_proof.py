"""How a job ended: only what is proven is good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.cluster.proof import End, Ending, Facts, Marker, decide, exit_status, parse_marker
from perf.cluster.scheduler import Phase, Seen

COMPLETED = Seen(Phase.COMPLETED, "COMPLETED", status=0, signal=0)
GOOD = Marker(0, 1.0)


def seen(phase: Phase, word: str, **more) -> Seen:
    """Return what a scheduler says."""
    return Seen(phase, word, **more)


@pytest.mark.parametrize("status", [0, 1, 10, 11, 12])
def test_a_finished_job_is_done_whatever_its_verdicts(status):
    """pytest's own statuses are results, not trouble."""
    ending = decide(Facts(marker=Marker(status, 1.0), seen=COMPLETED, tests=3))

    assert (End.DONE, status) == (ending.end, ending.status)


def test_an_end_marker_alone_is_enough_where_the_scheduler_says_nothing_and_that_is_said():
    """Without sacct and with a controller that has forgotten the job, its own word counts."""
    ending = decide(Facts(marker=GOOD, tests=3))

    assert ending.good
    assert "could not be asked" in ending.sentence


@pytest.mark.parametrize(
    ("word", "phase", "end"),
    [
        ("TIMEOUT", Phase.TIMED_OUT, End.TIMED_OUT),
        ("OUT_OF_MEMORY", Phase.OUT_OF_MEMORY, End.OUT_OF_MEMORY),
        ("NODE_FAIL", Phase.NODE_FAILED, End.NODE_FAILED),
        ("PREEMPTED", Phase.PREEMPTED, End.PREEMPTED),
        ("CANCELLED by 54321", Phase.CANCELLED, End.CANCELLED_BY_OTHERS),
        ("FAILED", Phase.FAILED, End.FAILED),
    ],
)
@pytest.mark.parametrize("marker", [None, GOOD])
def test_a_bad_end_state_is_bad_whatever_the_end_marker_says(word, phase, end, marker):
    """A step that died, or a job that was ended in its last second, is no good job."""
    ending = decide(Facts(marker=marker, seen=seen(phase, word), tests=3, missing=1))

    assert (end, None) == (ending.end, ending.status)
    assert word in ending.sentence
    assert "2 of 3 tests had left an outcome, which is kept" in ending.sentence


def test_failed_with_exit_0_0_is_failed_and_explained():
    """Slurm says so where a prolog or a node went wrong; it hid failing tests elsewhere."""
    ending = decide(Facts(marker=GOOD, seen=seen(Phase.FAILED, "FAILED", status=0, signal=0), tests=1))

    assert End.FAILED is ending.end
    assert "something other than its script went wrong" in ending.sentence


def test_completed_without_an_end_marker_is_incomplete():
    """COMPLETED alone proves nothing: the script may never have run."""
    assert End.INCOMPLETE is decide(Facts(seen=COMPLETED, tests=1, missing=1)).end


def test_a_job_of_which_nobody_knows_anything_has_vanished():
    """An empty queue is no success."""
    assert End.VANISHED is decide(Facts(tests=1, missing=1)).end
    assert End.NEVER_RAN is decide(Facts(tests=1, missing=1, ran=False)).end


def test_a_test_without_an_outcome_makes_a_finished_job_incomplete():
    """Every expected record, or the job is not done."""
    ending = decide(Facts(marker=GOOD, seen=COMPLETED, tests=5, missing=2))

    assert End.INCOMPLETE is ending.end
    assert "2 of 5 tests left no outcome" in ending.sentence


def test_a_job_that_was_warned_of_its_limit_has_timed_out():
    """It ended in order, before the scheduler had to end it."""
    assert End.TIMED_OUT is decide(Facts(marker=Marker(2, 1.0, "USR1"), seen=COMPLETED, tests=1)).end
    failed = seen(Phase.FAILED, "FAILED", status=2, signal=0)
    assert End.TIMED_OUT is decide(Facts(marker=Marker(2, 1.0, "USR1"), seen=failed, tests=1)).end


@pytest.mark.parametrize("status", [2, 3, 4, 5, 75, 127, 137])
def test_another_status_is_a_failed_job(status):
    """An interrupted, broken or misused pytest has no result."""
    assert End.FAILED is decide(Facts(marker=Marker(status, 1.0), seen=COMPLETED, tests=1)).end


def test_a_node_that_does_not_see_the_repository_is_named():
    """The commonest mistake of a new site has its own sentence."""
    ending = decide(
        Facts(marker=Marker(74, 1.0), seen=seen(Phase.FAILED, "FAILED", status=74, nodes="n7"), tests=1)
    )

    assert "does not see the repository" in ending.sentence
    assert "n7" in ending.sentence


def test_what_we_cancelled_says_why():
    """Ctrl-C is not somebody else, and a job that never started is told apart."""
    assert (End.CANCELLED, End.NEVER_RAN) == (
        decide(Facts(ours="Ctrl-C", tests=1)).end, decide(Facts(ours="it waited", ran=False, tests=1)).end,
    )  # fmt: skip
    assert "Ctrl-C" in decide(Facts(ours="Ctrl-C", tests=1)).sentence


def test_a_requeued_job_is_no_good_even_with_a_good_marker():
    """Two starts share one folder."""
    assert End.REQUEUED is decide(Facts(marker=GOOD, seen=COMPLETED, requeued=True, tests=1)).end


def test_the_schedulers_words_are_made_harmless():
    """A reason with control characters reaches no terminal as it is."""
    ending = decide(Facts(seen=seen(Phase.FAILED, "FAILED", reason="\x1b[2J", status=1), tests=1))

    assert "\x1b" not in ending.sentence


phases = st.sampled_from(list(Phase))
markers = st.none() | st.builds(
    Marker, st.integers(0, 255), st.just(1.0), st.sampled_from(["", "USR1", "TERM"])
)
facts = st.builds(
    Facts,
    marker=markers,
    seen=st.none() | st.builds(Seen, phases, st.just("WORD"), status=st.none() | st.integers(0, 255)),
    tests=st.just(4),
    missing=st.integers(0, 4),
    ours=st.sampled_from(["", "why"]),
    requeued=st.booleans(),
    ran=st.booleans(),
)


@given(facts)
def test_nothing_is_good_without_marker_outcomes_and_no_bad_state(given_facts):
    """Whatever is known and not known, DONE needs the whole proof."""
    ending = decide(given_facts)

    if ending.good:
        assert given_facts.marker is not None
        assert given_facts.marker.status in (0, 1, 10, 11, 12)
        assert 0 == given_facts.missing
        assert given_facts.seen is None or given_facts.seen.phase in (
            Phase.COMPLETED, Phase.PENDING, Phase.RUNNING, Phase.REQUEUED, Phase.UNKNOWN,
        )  # fmt: skip
        assert not given_facts.ours
        assert not given_facts.requeued
    assert (ending.status is not None) == ending.good
    assert ending.sentence.endswith(".")


@given(st.text(max_size=30))
def test_an_end_marker_is_read_or_is_none(text):
    """Half a file is no marker."""
    marker = parse_marker(text)
    assert marker is None or marker.status >= 0


def test_markers_are_read():
    """Status, time, and the signal that the script caught."""
    assert Marker(2, 1795848000.0, "USR1") == parse_marker("2 1795848000 USR1\n")
    assert Marker(0, 1795848000.0) == parse_marker("0 1795848000 \n")
    assert None is parse_marker("0")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([0, 0], 0),
        ([0, 12], 0),
        ([12, 12], 12),
        ([10, 0], 10),
        ([10, None], 11),
        ([None, 1], 1),
        ([11, 10], 11),
        ([], 12),
    ],
)
def test_a_runs_status_is_the_first_that_applies(statuses, expected):
    """1 before 11 before 10; a lost job is 11; 12 only where nothing at all was judged."""
    endings = [Ending(End.FAILED if s is None else End.DONE, "x.", s) for s in statuses]

    assert expected == exit_status(endings)
