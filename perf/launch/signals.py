"""What happens when the driver is told to end while a launch runs: clean up first, then do as told."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

NOTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; scancel, kill and nox; a closed terminal. The launch is in a session of its own and gets none of them."""


class Terminated(KeyboardInterrupt):
    """The driver was told to end by SIGTERM or SIGHUP, and its launch was cleaned up.

    A KeyboardInterrupt, since that is what pytest and others end in order for, with their own files written.
    """


def end_in_order_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: what it has started is ended, what it has found out is written.

    For a driver that a scheduler ends; a launch notes the signal itself (`Interruption`).
    """

    def end(signum: int, _frame: FrameType | None) -> None:
        # Once: a second one must not interrupt the tidying up.
        signal.signal(signum, signal.SIG_IGN)
        raise Terminated(f"ended by {signal.Signals(signum).name}")

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)


class Interruption:
    """Notes SIGINT, SIGTERM and SIGHUP instead of acting on them, while used as a context.

    Handlers can be set in the main thread only; elsewhere nothing is noted, and the main thread is interrupted as
    ever. A signal that was ignored before (``nohup``) stays ignored.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.count = 0
        self._previous: dict[int, Any] = {}

    @property
    def happened(self) -> bool:
        """Whether the driver was told to end."""
        return self.count > 0

    @property
    def urgent(self) -> bool:
        """Whether it was told more than once: who asks again does not want to wait."""
        return self.count > 1

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for signum in NOTED:
                previous = signal.getsignal(signum)
                # None: set by foreign code, which could not be put back.
                if previous is not signal.SIG_IGN and previous is not None:
                    signal.signal(signum, self._note)
                    self._previous[signum] = previous
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, previous in self._previous.items():
            signal.signal(signum, previous)

    def deliver(self) -> None:
        """Do now as the driver was told, if it was. Call it when the context has ended.

        Raises
        ------
        KeyboardInterrupt
            After SIGINT, unless the caller's own handler raises something else.
        Terminated
            After SIGTERM and SIGHUP, when the caller's own handler, where there is one, has run.
        """
        if self.signum is None:
            return
        if callable(self._previous[self.signum]):
            signal.raise_signal(self.signum)
        raise Terminated(f"ended by {signal.Signals(self.signum).name}; the running launch was cleaned up")

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.signum is None:
            self.signum = signum
