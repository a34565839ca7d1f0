"""Drawing a run's events while it is measured: one live line on a terminal, one line an event anywhere else."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Literal, Self

import rich.console
from rich.live import Live
from rich.text import Text

from perf.records import Event
from perf.report.tail import EventTail, follow
from perf.report.tally import Tally, live_line, plain_line
from perf.report.text import fit

__all__ = ["EventTail", "Mode", "Progress", "choose_mode", "follow"]

Mode = Literal["live", "plain", "quiet"]


def choose_mode(
    console: rich.console.Console, quiet: bool = False, environ: Mapping[str, str] = os.environ
) -> Mode:
    """Choose how to draw: ``live`` on a terminal that a person watches, ``plain`` in CI, a pipe or a file."""
    if quiet:
        return "quiet"
    watched = console.is_terminal and not console.is_dumb_terminal
    # CI services set CI; their logs keep what a live line would overwrite.
    return "live" if watched and environ.get("CI", "").lower() in ("", "0", "false") else "plain"


class Progress:
    """Draws events. A context manager; may be used from several threads.

    Trouble in drawing (a closed pipe, an encoding, a second live display) ends the drawing and never the run:
    `trouble` holds what happened then.

    Parameters
    ----------
    console
        Where to draw. Whoever makes it sees to it that output is not captured.
    mode
        ``live``: one line that is redrawn and leaves nothing behind, with failures and notes above it; falls back to
        ``plain`` where the console is no terminal. ``plain``: one line an event, without control characters.
        ``quiet``: count only.
    clock
        Returns seconds since 1970; the events carry the same clock's times.
    """

    def __init__(
        self, console: rich.console.Console, mode: Mode, clock: Callable[[], float] = time.time
    ) -> None:
        self.console = console
        self.mode: Mode = "plain" if mode == "live" and not console.is_terminal else mode
        self.tally = Tally()
        self.trouble: BaseException | None = None
        self._clock = clock
        self._lock = threading.RLock()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self.mode == "live":
            self._safely(self._start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._safely(self._stop)

    def on_event(self, event: Event) -> None:
        """Count and draw one event."""
        with self._lock:
            seconds = self.tally.add(event)
            if self.mode == "quiet":
                return
            if self.mode == "plain" or event.kind not in ("planned", "extend", "start", "done"):
                self._safely(lambda: self._print(plain_line(self.tally, event, seconds)))
        self.tick()

    def tick(self) -> None:
        """Redraw the live line: call it a few times a second, or whenever there is time."""
        with self._lock:
            if self._live is not None:
                self._safely(self._redraw)

    def _start(self) -> None:
        # No refreshing thread of rich's own: it would draw while a test prints.
        self._live = Live(console=self.console, transient=True, auto_refresh=False)
        self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _redraw(self) -> None:
        if self._live is not None:
            self._live.update(self._line(), refresh=True)

    def _line(self) -> Text:
        now = self._clock()
        left = self.tally.seconds_left(now)
        line = live_line(self.tally, now, None if left is None else _time_of_day(now + left, now))
        # Cropped, not wrapped: a second line would stay behind when the terminal is resized.
        return Text(fit(line, self.console.encoding), no_wrap=True, overflow="ellipsis")

    def _print(self, line: str) -> None:
        # Text, so that nothing is markup; soft_wrap, so that an event is one line, however long.
        self.console.print(Text(fit(line, self.console.encoding)), soft_wrap=True)

    def _safely(self, draw: Callable[[], None]) -> None:
        """Draw; on trouble, draw nothing more. The measurement is worth more than its picture."""
        with self._lock:
            if self.trouble is not None and self._live is None:
                return
            try:
                draw()
            # SystemExit: that is how rich answers a closed pipe.
            except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever drawing raises, the run goes on
                self.trouble = self.trouble or error
                self.mode = "quiet"
                live, self._live = self._live, None
                if live is not None:
                    self._give_up(live)

    def _give_up(self, live: Live) -> None:
        try:
            live.stop()
        except (Exception, SystemExit):  # noqa: BLE001 - as above
            # The first trouble is kept; the same console has most likely failed again.
            return


def _time_of_day(moment: float, now: float) -> str:
    """Write a local time, with the date if it is not today's."""
    then, today = time.localtime(moment), time.localtime(now)
    same_day = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M" if same_day else "%m-%d %H:%M", then)
