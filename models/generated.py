"""Folders of generated data in the cache: made once, whole, by whichever process is first, with check sums inside."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from typing import Callable

from models.errors import DataError
from models.files import sync_folder

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


def ensure_folder(
    cache_dir: str,
    name: str,
    write: Callable[[str], None],
    *,
    what: str,
    room: str,
    else_root: str,
    lock: bool = False,
) -> str:
    """Return the folder of a generated set, made if it is missing.

    Parameters
    ----------
    cache_dir : str
        Folder for generated data; made if it is missing.
    name : str
        Name of the set's folder, with its version.
    write : callable
        Writes all files into the empty folder that it is given.
    what, room, else_root : str
        For the error: what can't be written, how much room it takes, and what a data root would hold instead.
    lock : bool
        Whether a second process waits for the first, rather than making the set too and throwing it away.

    Raises
    ------
    DataError
        The cache can't be written.
    """
    folder = os.path.join(cache_dir, name)
    if os.path.isdir(folder):
        return folder
    own = os.path.join(cache_dir, f".{name}.{secrets.token_hex(8)}.tmp")
    try:
        os.makedirs(cache_dir, exist_ok=True)
        with _held(os.path.join(cache_dir, f".{name}.lock")) if lock else contextlib.nullcontext():
            if os.path.isdir(folder):
                return folder
            os.mkdir(own)
            write(own)
            try:
                os.rename(own, folder)
            except OSError:
                # Another process was first. Its folder is complete, since it too came by one rename.
                if not os.path.isdir(folder):
                    raise
            sync_folder(cache_dir)
    except OSError as error:
        raise DataError(
            f"{what} can't be written to {cache_dir!r}: {error}. Expected a folder with {room} of room; name another "
            f"cache folder, or a data root that holds {else_root}."
        ) from error
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return folder


def read_sums(folder: str, file: str, names: Sequence[str]) -> dict[str, str]:
    """Read check sums in the form of ``md5sum``, one for each of `names`.

    Raises
    ------
    DataError
        They are missing or unreadable, so the set can't be trusted.
    """
    path = os.path.join(folder, file)
    anew = f"Remove {folder!r}; it is then made anew."
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            # A few lines; a file that is longer is none of ours.
            lines = [line.split() for line in stream.read(4096).splitlines()]
    except OSError as error:
        raise DataError(f"{path!r} can't be read: {error.strerror}. {anew}") from error
    sums = {line[1]: line[0] for line in lines if len(line) == 2 and re.fullmatch("[0-9a-f]{32}", line[0])}
    if len(lines) != len(sums) or sorted(sums) != sorted(names):
        raise DataError(
            f"{path!r} names {sorted(sums)}, expected one md5 for each of {sorted(names)}. {anew}"
        )
    return sums


@contextlib.contextmanager
def _held(path: str) -> Iterator[None]:
    """Hold a lock that ends with this process, or nothing where the disk has no locks. The empty file stays."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
