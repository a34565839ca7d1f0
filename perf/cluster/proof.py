"""How a job ended, from all that is known of it: its own end marker, then what the scheduler says. Pure.

Good is only what is proven: the scheduler says COMPLETED or can't be asked, the end marker is there with a status of a
finished run, and every test has left its outcome. A job that vanished has failed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from perf.cluster.scheduler import Phase, Seen
from perf.cluster.script import FINISHED, NO_REPOSITORY
from perf.launch.text import harmless, shorten
from perf.whole import whole

NEAR_LIMIT = "USR1"


class End(enum.StrEnum):
    """How a job ended, in a word."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    CANCELLED = "cancelled"
    CANCELLED_BY_OTHERS = "cancelled by somebody"
    NEVER_RAN = "never ran"
    VANISHED = "vanished"
    INCOMPLETE = "incomplete"
    NOT_SUBMITTED = "not submitted"


@dataclass(frozen=True)
class Marker:
    """The end marker: pytest's status, when it ended (Unix time), and the signal that the script caught, or ''."""

    status: int
    at: float
    caught: str = ""


@dataclass(frozen=True)
class Facts:
    """All that is known of a job that is over.

    Parameters
    ----------
    marker
        Its end marker; None where there is none.
    seen
        What the scheduler says of its end, from sacct, else scontrol, else the queue; None where nobody knows it.
    tests, missing
        Tests that it had, and those that left no outcome.
    ours
        Whether we cancelled it, and why.
    requeued
        Whether it was put back into the queue after it had started.
    ran
        Whether it was seen running, or has left a sign that it started.
    """

    marker: Marker | None = None
    seen: Seen | None = None
    tests: int = 0
    missing: int = 0
    ours: str = ""
    requeued: bool = False
    ran: bool = True


@dataclass(frozen=True)
class Ending:
    """How a job ended: the word, a sentence with the evidence, and pytest's own status where the run is complete."""

    end: End
    sentence: str
    status: int | None = None

    @property
    def good(self) -> bool:
        """Whether the job did its work, whatever its verdicts are."""
        return self.end is End.DONE


def parse_marker(text: str) -> Marker | None:
    """Read an ``exit_code`` file: status, time, and perhaps a signal. None where it is none."""
    parts = text.split()
    status, at = (whole(part) for part in parts[:2]) if len(parts) > 1 else (None, None)
    if status is None or at is None:
        return None
    return Marker(status, float(at), " ".join(parts[2:]))


def decide(facts: Facts) -> Ending:
    """Return how a job ended."""
    if facts.requeued:
        return Ending(
            End.REQUEUED, "It was put back into the queue after it had started; it does not measure twice."
        )
    if facts.ours:
        word = End.CANCELLED if facts.ran else End.NEVER_RAN
        return Ending(word, f"Cancelled by stackproof: {facts.ours}.")
    seen = facts.seen
    if seen is not None and seen.phase.ended and seen.phase is not Phase.COMPLETED:
        return _scheduler_says(facts, seen)
    return _marker_says(facts, known=seen is not None and seen.phase is Phase.COMPLETED)


ENDS = {
    Phase.TIMED_OUT: (End.TIMED_OUT, "It ran past its time limit"),
    Phase.OUT_OF_MEMORY: (End.OUT_OF_MEMORY, "It ran out of the memory that it had asked for"),
    Phase.NODE_FAILED: (End.NODE_FAILED, "A node failed under it"),
    Phase.PREEMPTED: (End.PREEMPTED, "Another job of higher priority took its nodes"),
}


def _scheduler_says(facts: Facts, seen: Seen) -> Ending:
    said = _quoted(seen)
    if seen.phase in ENDS:
        end, words = ENDS[seen.phase]
        return Ending(end, f"{words} ({said}).{_kept(facts)}")
    if seen.phase is Phase.CANCELLED:
        word = End.CANCELLED_BY_OTHERS if facts.ran else End.NEVER_RAN
        return Ending(word, f"Somebody else cancelled it ({said}).{_kept(facts)}")
    if facts.marker is not None and facts.marker.caught == NEAR_LIMIT:
        return Ending(
            End.TIMED_OUT, f"Its time limit was near, so it was told to end ({said}).{_kept(facts)}"
        )
    if facts.marker is not None and facts.marker.status == NO_REPOSITORY:
        return Ending(End.FAILED, f"Its node does not see the repository ({said}).")
    if seen.status == 0 and not seen.signal:
        what = "It failed with exit status 0: something other than its script went wrong, a prolog, an epilog or a node"
        return Ending(End.FAILED, f"{what} ({said}).{_kept(facts)}")
    return Ending(End.FAILED, f"It failed ({said}).{_pytest(facts)}{_kept(facts)}")


def _marker_says(facts: Facts, *, known: bool) -> Ending:
    marker = facts.marker
    if marker is None and known:
        return Ending(
            End.INCOMPLETE, f"The scheduler says COMPLETED, but it left no end marker.{_kept(facts)}"
        )
    if marker is None:
        how = "It left the queue, and neither an end marker nor the scheduler says how it ended"
        return Ending(End.VANISHED if facts.ran else End.NEVER_RAN, f"{how}.{_kept(facts)}")
    if marker.caught == NEAR_LIMIT:
        return Ending(End.TIMED_OUT, f"Its time limit was near, so it was told to end.{_kept(facts)}")
    if marker.status not in FINISHED:
        return Ending(End.FAILED, f"It did not finish.{_pytest(facts)}{_kept(facts)}")
    if facts.missing:
        return Ending(
            End.INCOMPLETE,
            f"pytest ended with {marker.status}, but {facts.missing} of {facts.tests} tests left no outcome.",
        )
    unknown = "" if known else " The scheduler could not be asked how it ended."
    return Ending(End.DONE, f"Finished, exit status {marker.status}.{unknown}", marker.status)


def _quoted(seen: Seen) -> str:
    """Return the scheduler's own words."""
    parts = [seen.word]
    if seen.status is not None:
        parts.append(f"exit {seen.status}:{seen.signal or 0}")
    if seen.reason:
        parts.append(seen.reason)
    if seen.nodes:
        parts.append(f"on {seen.nodes}")
    return shorten(harmless(", ".join(parts)), 200)


def _pytest(facts: Facts) -> str:
    if facts.marker is None:
        return " It left no end marker."
    words = {
        2: "it was interrupted",
        3: "an internal error",
        4: "it could not use its arguments",
        127: "no such Python",
    }
    said = words.get(facts.marker.status, "")
    return f" Its pytest ended with {facts.marker.status}{f' ({said})' if said else ''}; see its stdout."


def _kept(facts: Facts) -> str:
    done = facts.tests - facts.missing
    return (
        f" {done} of {facts.tests} tests had left an outcome, which is kept." if facts.tests and done else ""
    )


def exit_status(endings: list[Ending]) -> int:
    """Return a run's exit status from its jobs': the first that applies of 1, 11, 10; 0 if anything was judged; 12.

    A number that failed counts even where another job was lost; a lost job is 11.
    """
    statuses = {ending.status for ending in endings}
    if 1 in statuses:
        return 1
    if 11 in statuses or None in statuses:
        return 11
    return 10 if 10 in statuses else 0 if 0 in statuses else 12
