"""One measurement at a time on a node, whoever starts it: runs that share cores, links and power measure each other."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock
import psutil

from perf import contract
from perf.launch.claims import Claims, LockError, unusable
from perf.launch.text import harmless, shorten

LOCK_FILE = "node.lock"
HOLDER_FILE = "node.holder"
FOLDER = "stackproof"
SHARED_TMP = "/tmp"

NO_NAME = "somebody who left no name"

LOOK_SECONDS = 0.5
"""Between two tries for the lock. A launch takes seconds at least."""

REPEAT_SECONDS = 60.0
"""Between two notes that say who holds it: a person who waits wants to know that it still goes on."""

HOLDER_BYTES = 4096

SHARER = "share-"
"""Begins the name of the file that each launch holds which shares the node (`perf.launch.sharing`)."""


@dataclass(frozen=True)
class Holder:
    """Who holds the lock. `started` tells the process from a later one of the same number. Both times are Unix's."""

    pid: int
    user: str
    run: str
    since: float
    started: float

    def __str__(self) -> str:
        # The note may hold any number; 32 bits of seconds are dates that every C library knows.
        since = time.strftime("%H:%M:%S", time.localtime(min(max(self.since, 0.0), 2.0**31)))
        return f"run {self.run} of user {self.user} (process {self.pid}, since {since})"


def lock_folder() -> Path:
    """Return the folder of this node's lock.

    ``/tmp``, where it can be used: batch systems give each job a TMPDIR of its own, sometimes on a shared file system,
    and a lock in there would be seen by nobody else or by every node. Python's own choice elsewhere.
    """
    usable = os.path.isdir(SHARED_TMP) and os.access(SHARED_TMP, os.W_OK | os.X_OK)
    return Path(SHARED_TMP if usable else tempfile.gettempdir(), FOLDER)


class NodeLock:
    """The node's lock, as a context manager. It may be entered again by who holds it.

    It is an flock: the kernel frees it when its holder dies. The holder's file beside it only informs.

    Parameters
    ----------
    run
        The run that wants it, for others to read.
    folder
        Where it lies; `lock_folder` if None. Anyone on the node must be able to write there.
    say
        Told in one sentence who holds it, when waiting starts, when the holder changes, and once a minute.
    alone
        Whether it also waits for the launches that share the node; those that come later wait for the lock.
    """

    def __init__(
        self,
        run: str,
        folder: Path | None = None,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
        *,
        alone: bool = True,
    ) -> None:
        self._run = run
        self._alone = alone
        self._folder = folder or lock_folder()
        self._say = say
        self._depth = 0
        self._lock: filelock.FileLock | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._depth > 0

    def acquire(self) -> None:
        """Wait for the lock, as long as it takes.

        Raises
        ------
        LockError
            If the folder can't be used.
        """
        if self._depth == 0:
            prepare_folder(self._folder)
            path = self._folder / LOCK_FILE
            # No soft lock: it would outlive a killed holder. Not one a thread: the driver's threads share it.
            lock = filelock.FileLock(path, mode=0o666, thread_local=False, fallback_to_soft=False)
            try:
                self._wait(lock)
            except (OSError, NotImplementedError) as error:
                raise unusable(path, error) from error
            self._lock = lock
            self._publish()
            if self._alone:
                try:
                    self._until_alone()
                except BaseException:
                    self._free()
                    raise
        self._depth += 1

    def release(self) -> None:
        """Give the lock back, when as often released as acquired."""
        if self._depth == 0:
            raise RuntimeError("the node's lock was released more often than it was acquired")
        self._depth -= 1
        if self._depth == 0:
            self._free()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _free(self) -> None:
        if self._lock is not None:
            # First the note, then the lock: the other way round it could be the next holder's note.
            with contextlib.suppress(OSError):
                (self._folder / HOLDER_FILE).unlink()
            self._lock.release()
            self._lock = None

    def _wait(self, lock: filelock.FileLock) -> None:
        told: tuple[str, float] | None = None
        while True:
            try:
                lock.acquire(timeout=LOOK_SECONDS if told else 0, poll_interval=LOOK_SECONDS / 5)
                return
            except filelock.Timeout:
                holder = read_holder(self._folder)
                told = self._tell(told, str(holder) if holder else NO_NAME)

    def _until_alone(self) -> None:
        """Wait for the launches that share the node. No more of them come: each takes the lock for a moment first."""
        told: tuple[str, float] | None = None
        claims = Claims(self._folder)
        while True:
            with claims.guard():
                sharing = claims.living(SHARER)
            if not sharing:
                return
            told = self._tell(
                told, "; ".join(dict.fromkeys(str(parse_holder(n) or NO_NAME) for n in sharing.values()))
            )
            time.sleep(LOOK_SECONDS)

    def _tell(self, told: tuple[str, float] | None, who: str) -> tuple[str, float]:
        """Say who is waited for, unless that was said just now; return what was said last, and when."""
        now = time.monotonic()
        if told is not None and told[0] == who and now - told[1] < REPEAT_SECONDS:
            return told
        self._say(
            f"waiting for this node: it is measured by {harmless(who)}; lock {self._folder / LOCK_FILE}"
        )
        return who, now

    def _publish(self) -> None:
        """Note who holds the lock. Not being able to is no reason not to measure."""
        text = json.dumps(holder_note(self._run))
        path = self._folder / HOLDER_FILE
        with contextlib.suppress(OSError):
            contract.write_whole(str(path), text)
            path.chmod(0o644)


def prepare_folder(folder: Path) -> None:
    """Make the lock's folder, writable by everyone, and check that it can be used.

    It is not sticky, unlike /tmp: kernels refuse to open another user's file for writing in a sticky folder
    (``fs.protected_regular``), and the lock file belongs to whoever came first.

    Raises
    ------
    LockError
        If it is no folder (a link is none), or can't be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        status = folder.lstat()
        if (
            status.st_uid == os.getuid()
            and stat.S_ISDIR(status.st_mode)
            and stat.S_IMODE(status.st_mode) != 0o777
        ):
            # mkdir's own mode is cut by the umask.
            folder.chmod(0o777)
    except OSError as error:
        raise LockError(
            f"the folder of the node's lock, {folder}, can't be made: {error.strerror}. "
            f"Something else may be in its place: look at `ls -ld {folder}`"
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        raise LockError(
            f"the folder of the node's lock, {folder}, is a link, which is not followed; remove it"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LockError(
            f"the folder of the node's lock, {folder}, can't be written by you; its owner (user number "
            f"{status.st_uid}) should run `chmod 0777 {folder}` or remove it"
        )


def holder_note(run: str) -> dict[str, Any]:
    """Return what says that this process holds something, for others to read. Reads /proc."""
    me = psutil.Process()
    return {
        "pid": me.pid,
        "user": _user(),
        "run": run,
        "since": time.time(),
        "started": me.create_time(),
    }


def read_holder(folder: Path) -> Holder | None:
    """Return who holds the lock, as far as the note can be trusted: its process must still be the one that wrote it."""
    try:
        handle = os.open(folder / HOLDER_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            note = json.loads(file.read(HOLDER_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return parse_holder(note)


def parse_holder(note: Any) -> Holder | None:
    """Return whom a note names; None if it names nobody, or a process that is gone. Reads /proc."""
    try:
        holder = Holder(
            int(note["pid"]),
            _short(note["user"]),
            _short(note["run"]),
            float(note["since"]),
            float(note["started"]),
        )
        alive = abs(psutil.Process(holder.pid).create_time() - holder.started) < 1.0
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, psutil.Error):
        return None
    return holder if alive else None


def _short(value: object) -> str:
    return shorten(harmless(str(value)), 80)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"number {os.getuid()}"


__all__ = [
    "Holder",
    "LockError",
    "NodeLock",
    "holder_note",
    "lock_folder",
    "parse_holder",
    "prepare_folder",
    "read_holder",
]
