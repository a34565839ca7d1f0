"""Writing files whole: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a temporary neighbour of ``path`` for writing; put it in place when the block ends without an error.

    Parameters
    ----------
    path : str
        The file to write. An existing file is replaced.

    Yields
    ------
    BinaryIO
        The stream to write to.

    Raises
    ------
    OSError
        The folder can't be written, or the disk is full. ``path`` is then what it was before, and the temporary
        file is gone.
    """
    # Not tempfile.mkstemp: that makes files of mode 0600, which colleagues who share the folder could not read.
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        # Also on KeyboardInterrupt: nobody else knows the temporary name.
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(path) or ".")


def sync_folder(folder: str) -> None:
    """Ask the disk to keep a folder's names; file systems that refuse this for folders are left alone.

    Parameters
    ----------
    folder : str
        An existing folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
