"""What every thread of a rank is doing when its time is nearly over, written without a danger to the rank itself.

``faulthandler.dump_traceback_later`` reads the frames of threads that go on running. Where it reads one that is just
being left, the process is killed by SIGSEGV, and a rank that is merely slow ends as a crash (CPython's issues 116008,
131580, 140815; a process whose threads call functions all the time seldom outlives a hundred such dumps). So frames are
read when they stand still. A thread of Python's takes the interpreter's lock and dumps. Where it does not get the lock,
its owner is stuck in native code, and nearly always that is the main thread: a timer's signal interrupts this one, and
all stand still while its handler, which needs no lock, dumps.
"""

from __future__ import annotations

import atexit
import faulthandler
import signal
import threading
import time
from typing import IO, Callable


class StackDump:
    """Dumps the stacks of all threads once, unless it is called off before. There is one of it in a process at a time.

    The signal is SIGALRM, which nothing else in a worker uses.

    Parameters
    ----------
    file
        Where they go; open for as long as the dump is armed.
    seconds
        From now to the dump; above 0.
    patience_seconds
        How long a thread of Python's may try to get the interpreter's lock, above 0: then the signal comes.
    then
        Called behind the thread's dump, with what waits so many seconds and says whether it was called off meanwhile.
    """

    def __init__(
        self,
        file: IO[str],
        seconds: float,
        patience_seconds: float,
        then: Callable[[Callable[[float], bool]], None] = lambda called_off: None,
    ) -> None:
        self._file = file
        self._then = then
        self._seconds = seconds
        self._signal_at = time.monotonic() + seconds + patience_seconds
        self._called_off = threading.Event()
        faulthandler.register(signal.SIGALRM, file=file, all_threads=True)
        signal.setitimer(signal.ITIMER_REAL, seconds + patience_seconds)
        # Python takes the handler away as it ends; the signal would then kill a process whose libraries end slowly.
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0.0)
        self._thread = threading.Thread(target=self._dump, name="stack dump", daemon=True)
        self._thread.start()

    def _dump(self) -> None:
        # The kernel gives the signal to the main thread, but in a process that was stopped to whichever wakes up first.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        # Behind the signal's time its dump is in the file already; a second one could be cut short by the rank's end.
        if self._called_off.wait(self._seconds) or time.monotonic() >= self._signal_at:
            return
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        # Neither this nor the line above gives the lock away: between them nobody can get stuck with it.
        faulthandler.dump_traceback(self._file, all_threads=True)
        self._then(self._called_off.wait)

    def call_off(self) -> None:
        """Dump nothing any more; a dump that has begun is waited for. The file may be closed then."""
        self._called_off.set()
        self._thread.join()
        # In this order: without the handler the signal would end the process.
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.unregister(signal.SIGALRM)
