"""How a command ends: with its status, and in silence when whoever read its output has left (``… | head``)."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable

READER_LEFT = 128 + signal.SIGPIPE
"""What a shell says of a command that ended so."""


def finish(main: Callable[[], int]) -> None:
    """Run a command and end this process with its exit status.

    Python ignores SIGPIPE, so that a command whose reader has left raises an error where it prints, or as late as
    Python's own end. Here that is what it is for other commands: the end, without a traceback.
    """
    try:
        try:
            status = main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_left():
            # Another pipe, which is an error as any.
            raise
        # What is buffered still has somewhere to go when Python flushes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = READER_LEFT
    sys.exit(status)


def _reader_left() -> bool:
    """Whether nobody can read the standard output any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
