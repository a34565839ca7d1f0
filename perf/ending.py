"""How a command ends: with its status, and in silence when whoever read its output has left (``… | head``)."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

READER_LEFT = 128 + signal.SIGPIPE
"""What a shell says of a command that ended so."""

INTERRUPTED = 128 + signal.SIGINT
"""What a shell says of a command that Ctrl-C ended."""

OUTPUT_LOST = 11
"""Where standard output can't be written. No finding's status: what was found is not told."""


class OutputLost(Exception):
    """Standard output can't be written.

    No OSError: a command that handles these as a file's trouble, or a scheduler's, would tell the wrong thing.

    Parameters
    ----------
    why
        The reason as words.
    reader_left
        Whether that is only since nobody reads it any more.
    """

    def __init__(self, why: str, *, reader_left: bool = False) -> None:
        super().__init__(f"standard output can't be written: {why}")
        self.reader_left = reader_left


class _Output(io.FileIO):
    """Standard output whose errors are told from those of every other file and pipe."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputLost(
                error.strerror or str(error), reader_left=isinstance(error, BrokenPipeError)
            ) from None


def finish(main: Callable[[], int]) -> None:
    """Run a command and end this process with its exit status.

    Python ignores SIGPIPE, so that a command whose reader has left raises an error where it prints, or as late as
    Python's own end. Here that is what it is for other commands: the end, without a traceback. A full disk behind the
    standard output is one line, and so is one that was closed: the first file that the command opens would be taken
    for it.
    """
    if sys.stdout is None:
        _complain(OutputLost("it is closed"))
        sys.exit(OUTPUT_LOST)
    _watch_output()
    try:
        try:
            status = main()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt as told:
        # Whoever pressed Ctrl-C knows why it ended; SIGTERM (`perf.launch.signals.Terminated`) says so.
        status = INTERRUPTED
        if str(told):
            _complain(told)
    except OutputLost as lost:
        # What is buffered still has somewhere to go when Python flushes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = READER_LEFT if lost.reader_left else OUTPUT_LOST
        if not lost.reader_left:
            _complain(lost)
    sys.exit(status)


def _watch_output() -> None:
    """Let `sys.stdout` raise `OutputLost`, and be in all else what it was."""
    old = sys.stdout
    old.flush()
    raw: Any = _Output(old.fileno(), "w", closefd=False)
    unbuffered = getattr(old, "write_through", False)
    sys.stdout = io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=getattr(old, "line_buffering", False),
        write_through=unbuffered,
    )


def _complain(lost: BaseException) -> None:
    if sys.stderr is not None:
        # On the same full disk, there is nobody to tell.
        with contextlib.suppress(OSError):
            print(f"error: {lost}", file=sys.stderr)
