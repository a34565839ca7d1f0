"""Files in the lock's folder that processes hold while they live: who waits, who shares the node, who has which GPU.

Each is an flock, which the kernel frees when its holder dies, so a file that can be locked is nobody's. What a file
says is for others to read. All of it is looked at and changed under one short lock, the guard.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

GUARD_FILE = "guard.lock"

GUARD_SECONDS = 60.0
"""The guard is held for milliseconds. Who holds it for a minute was stopped, or its file system hangs."""

NOTE_BYTES = 65536
"""Of a note that is read: a request names each of its cards, 40 bytes each."""


class LockError(Exception):
    """A lock can't be had at all: its folder is not usable. The message says which and what to do."""


@dataclass
class Claim:
    """A file that this process holds."""

    path: Path
    lock: filelock.BaseFileLock

    def drop(self, *, remove: bool) -> None:
        """Give it back. A file that names nothing lasting is removed; first that, so that nobody takes it for dead."""
        if remove:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.lock.release()


class Claims:
    """The claims of one folder.

    Parameters
    ----------
    folder
        Where they lie; made and checked before (`perf.launch.lock.prepare_folder`).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Nobody else looks at claims, or changes them, meanwhile.

        Raises
        ------
        LockError
            If it can't be had.
        """
        path = self._folder / GUARD_FILE
        lock = _file_lock(path)
        try:
            lock.acquire(timeout=GUARD_SECONDS, poll_interval=0.01)
        except filelock.Timeout as error:
            raise LockError(
                f"{path} has been held for {GUARD_SECONDS:.0f} s, which takes milliseconds otherwise: its holder was "
                f"stopped or hangs. Find it with `fuser {path}` and end it"
            ) from error
        except (OSError, NotImplementedError) as error:
            raise unusable(path, error) from error
        try:
            yield
        finally:
            lock.release()

    def take(self, name: str, note: Mapping[str, Any]) -> Claim | None:
        """Take a file and write into it who has it; None if somebody holds it. Under the guard.

        Raises
        ------
        LockError
            If the file can't be used.
        """
        path = self._folder / name
        lock = _file_lock(path)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return None
        except (OSError, NotImplementedError) as error:
            raise unusable(path, error) from error
        # Not being able to say who has it is no reason not to have it.
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.truncate()
                json.dump(note, file)
        return Claim(path, lock)

    def take_new(self, prefix: str, note: Mapping[str, Any]) -> Claim:
        """Take a file that nobody else names. Under the guard."""
        claim = self.take(f"{prefix}{secrets.token_hex(8)}.lock", note)
        if claim is None:
            raise LockError(f"{self._folder} holds a file that was just made up; remove the folder")
        return claim

    def living(self, prefix: str, mine: Claim | None = None) -> dict[str, Any]:
        """Return what the files with that prefix say that somebody else holds, by name. Under the guard.

        Those of the dead are removed. A note that can't be read is None.
        """
        found: dict[str, Any] = {}
        for path in sorted(self._folder.glob(f"{prefix}*.lock")):
            if mine is not None and path == mine.path:
                continue
            lock = _file_lock(path)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                found[path.name] = self.read(path.name)
            except (OSError, NotImplementedError):
                # A link, a folder, a pipe: nobody's claim.
                continue
            else:
                Claim(path, lock).drop(remove=True)
        return found

    def read(self, name: str) -> Any:
        """Return what a file says; None where that is nothing that could be read."""
        try:
            handle = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                return json.loads(file.read(NOTE_BYTES))
        except (OSError, ValueError, RecursionError):
            return None


def unusable(path: Path, error: Exception) -> LockError:
    """Return the error for a lock's file that can't be used."""
    return LockError(
        f"the lock {path} can't be used: {error}. It needs a local file system with flock, and a file that everyone "
        f"may write: remove {path.parent} (its owner can) and try again"
    )


def _file_lock(path: Path) -> filelock.FileLock:
    # No soft lock: it would outlive a killed holder. Not one a thread: the driver's threads share it.
    return filelock.FileLock(path, mode=0o666, thread_local=False, fallback_to_soft=False)
