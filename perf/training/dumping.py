"""What every thread of a rank is doing when its time is nearly over, written without a danger to the rank itself.

``faulthandler.dump_traceback_later`` reads the frames of threads that go on running. Where they do, it can read one
that is just being left, and the whole process is killed by SIGSEGV: a rank that is merely slow would end as a crash
(CPython's issues 116008, 131580, 140815; on Python 3.11 one such dump in about ten of a process that calls functions
all the time). Whoever holds the interpreter's lock reads frames that stand still. So a thread of Python's takes the
lock and dumps. Where it does not get it, the lock's owner is stuck in native code, nobody's frames move, and
``faulthandler``'s own timer, which needs no lock, can dump without that danger.
"""

from __future__ import annotations

import datetime
import faulthandler
import threading
from typing import IO


class StackDump:
    """Dumps the stacks of all threads once, unless it is called off before. `faulthandler` has one timer a process.

    Parameters
    ----------
    file
        Where they go; open for as long as the dump is armed.
    seconds
        From now to the dump; above 0.
    patience_seconds
        How long a thread of Python's may try to get the interpreter's lock, above 0: then the dump is made without it.
    """

    def __init__(self, file: IO[str], seconds: float, patience_seconds: float) -> None:
        self._file = file
        self._seconds = seconds
        self._called_off = threading.Event()
        faulthandler.dump_traceback_later(seconds + patience_seconds, file=file)
        self._thread = threading.Thread(target=self._dump, name="stack dump", daemon=True)
        self._thread.start()

    def _dump(self) -> None:
        if self._called_off.wait(self._seconds):
            return
        faulthandler.cancel_dump_traceback_later()
        # As faulthandler's own timer begins its dumps: one reader for both.
        self._file.write(f"Timeout ({datetime.timedelta(seconds=self._seconds)})!\n")
        self._file.flush()
        faulthandler.dump_traceback(self._file, all_threads=True)

    def call_off(self) -> None:
        """Dump nothing any more; a dump that has begun is waited for. The file may be closed then."""
        self._called_off.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
