"""Reading a run's events while they are written.

Under pytest-xdist the workers measure and append to ``events.jsonl``; the controller, which owns the terminal, reads
that file and draws.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Protocol

from perf import contract
from perf.records import Event

__all__ = ["FOLLOW_SECONDS", "Drawing", "EventTail", "follow"]

FOLLOW_SECONDS = 0.2
"""How often `follow` looks: a person does not notice a fifth of a second, and a launch takes several seconds."""


class Drawing(Protocol):
    """Whoever draws events."""

    def on_event(self, event: Event) -> None:
        """Take one event."""

    def tick(self) -> None:
        """Let time pass: redraw what depends on the clock."""


class EventTail:
    """Reads the whole lines that were appended to a file of events since the last look.

    A half line waits for its end, and is read again from its start, since a writer whose disk is full takes a half
    line back. A line that is no event becomes a ``note`` that says so: what is drawn must never end a run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._lines = 0

    def read(self) -> list[Event]:
        """Return the new events; none while the file does not exist.

        Raises
        ------
        OSError
            If the file is there and can't be read.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        events = []
        for line in whole.split(b"\n")[:-1]:
            self._lines += 1
            if line.strip():
                events.append(self._event(line))
        return events

    def _event(self, line: bytes) -> Event:
        where = f"{self.path}:{self._lines}"
        try:
            return contract.decode(Event, line.decode("utf-8"), where)
        # RecursionError: a line of ten thousand brackets is no event either.
        except (contract.ContractError, UnicodeDecodeError, RecursionError) as error:
            reason = str(error) if isinstance(error, contract.ContractError) else f"{where}: {error}"
            return Event(
                kind="note", time=time.time(), text=f"an event could not be read and is left out: {reason}"
            )


def follow(path: Path, drawing: Drawing, stop: threading.Event, interval: float = FOLLOW_SECONDS) -> None:
    """Draw the events of `path` as they come, until `stop` is set; then what is left. Made for a thread.

    Parameters
    ----------
    path
        The run's ``events.jsonl``; may not exist yet.
    drawing
        Gets the events, and a tick after each look.
    stop
        Set it and join the thread: events that were written before are still drawn.
    interval
        Seconds between two looks.
    """
    tail = EventTail(path)
    complained = False
    while True:
        last = stop.is_set()
        try:
            events = tail.read()
        except OSError as error:
            events = []
            if not complained:
                note = f"progress can't be shown for now: {path} can't be read ({error.strerror or error})"
                events = [Event(kind="note", time=time.time(), text=note)]
            complained = True
        for event in events:
            drawing.on_event(event)
        drawing.tick()
        if last:
            return
        stop.wait(interval)
