"""Counting a run's events: how many launches are done, what runs, when it will be over. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from perf.records import Event
from perf.report.text import duration

__all__ = ["Tally", "live_line", "plain_line"]


@dataclass
class Tally:
    """What the events so far add up to.

    Attributes
    ----------
    planned
        Launches in all: the sum of ``planned`` events, plus what ``extend`` events added.
    done, failed
        Launches that gave a record, and launches that did not.
    running
        The ``start`` events of launches that have not ended, by launch.
    seconds
        Wall times of the launches that gave a record, from ``start`` to ``done``.
    workers
        Who starts launches: as many launches can run at the same time.
    """

    planned: int = 0
    done: int = 0
    failed: int = 0
    running: dict[str, Event] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    workers: set[str] = field(default_factory=set)

    def add(self, event: Event) -> float | None:
        """Count one event; return the wall time in seconds of a launch that it ends, if its start was seen."""
        if event.kind in ("planned", "extend"):
            self.planned += event.total
        elif event.kind == "start":
            self.running[_key(event)] = event
            self.workers.add(event.worker)
        elif event.kind in ("done", "failed"):
            started = self.running.pop(_key(event), None)
            taken = None if started is None else max(0.0, event.time - started.time)
            if event.kind == "failed":
                # A launch that timed out or died at once says nothing about how long a launch takes.
                self.failed += 1
                return taken
            self.done += 1
            if taken is not None:
                self.seconds.append(taken)
            return taken
        return None

    @property
    def ended(self) -> int:
        """Launches that are over, with a record or without."""
        return self.done + self.failed

    @property
    def total(self) -> int:
        """Launches in all; never fewer than were seen, also where nothing was planned aloud."""
        return max(self.planned, self.ended + len(self.running))

    def seconds_left(self, now: float) -> float | None:
        """Estimate how long the run will still take, from the mean wall time of finished launches.

        None before the first launch is finished. What runs counts with what is left of its mean, and launches of
        several workers run beside each other.
        """
        if not self.seconds:
            return None
        mean = statistics.fmean(self.seconds)
        waiting = self.total - self.ended - len(self.running)
        running = sum(max(0.0, mean - max(0.0, now - event.time)) for event in self.running.values())
        return (waiting * mean + running) / max(1, len(self.workers))


def plain_line(tally: Tally, event: Event, seconds: float | None) -> str:
    """Say one event in one line, after `tally` counted it. Foreign text is not cleaned here.

    Parameters
    ----------
    seconds
        What `Tally.add` returned for this event.
    """
    if event.kind == "planned":
        return f"planned: {event.group}, {_launches(event.total)}; {tally.total} in all{_after(event.text)}"
    if event.kind == "extend":
        what = event.member or event.group
        return f"extended: {what}, {_launches(event.total)} more; {tally.total} in all{_after(event.text)}"
    if event.kind in ("start", "done", "failed"):
        width = len(str(tally.total))
        head = f"[{tally.ended:{width}d}/{tally.total}] {_launch_words(event)}"
        if event.kind == "start":
            return f"{head} starts{_after(event.text)}"
        after = [part for part in (event.text, duration(seconds) if seconds is not None else "") if part]
        if event.kind == "done":
            return f"{head} ... {', '.join(after) or 'done'}"
        return f"{head} FAILED{_after(', '.join(after))}"
    if event.kind == "note":
        return f"note: {event.text}"
    return f"note: an event of the unknown kind {event.kind!r} {event.text}".rstrip()


def live_line(tally: Tally, now: float, done_at: str | None) -> str:
    """Say in one line where the run stands.

    Parameters
    ----------
    tally, now
        The counts, and the time to hold them against (seconds since 1970).
    done_at
        The time of day at which the run will be done, in words; None where there is no estimate.
    """
    width = len(str(tally.total))
    parts = [f"[{tally.ended:{width}d}/{tally.total}]"]
    left = tally.seconds_left(now)
    if left is not None and tally.ended < tally.total:
        parts.append(
            f"{tally.total - tally.ended} left, about {duration(left)}"
            + (f", done {done_at}" if done_at else "")
        )
    else:
        parts.append(f"{tally.total - tally.ended} left")
    if tally.failed:
        parts.append(f"{tally.failed} FAILED")
    if tally.running:
        # The one that runs longest: the first to look at if the run seems to hang.
        oldest = min(tally.running.values(), key=lambda event: event.time)
        others = len(tally.running) - 1
        more = f" and {others} more" if others else ""
        parts.append(f"{_launch_words(oldest)}, {duration(now - oldest.time)}{more}")
    else:
        parts.append("between launches")
    return " · ".join(parts)


def _key(event: Event) -> str:
    return event.launch or f"{event.group}/{event.member}/{event.number}/{event.worker}"


def _launch_words(event: Event) -> str:
    what = event.member or event.group or event.launch
    if not event.number:
        return what
    return f"{what}  launch {event.number}" + (f" of {event.total}" if event.total else "")


def _launches(count: int) -> str:
    return "1 launch" if count == 1 else f"{count} launches"


def _after(text: str) -> str:
    return f": {text}" if text else ""
