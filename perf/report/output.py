"""Files that a person named for a command to write."""

from __future__ import annotations

import os
from pathlib import Path

from perf import contract


def write_named(path: Path, text: str) -> None:
    """Write a text to where somebody asked for it.

    A file is written whole and moved into place, where a link points to. What is no file (a device, a pipe) takes the
    text as it is: moved into its place, a file would take ``/dev/stdout`` from everybody else.

    Raises
    ------
    OSError
        It can't be written.
    """
    if path.exists() and not path.is_file():
        # Of a folder this is the error that says so.
        with path.open("w", encoding="utf-8") as out:
            out.write(text)
        return
    contract.write_whole(os.path.realpath(path), text)
