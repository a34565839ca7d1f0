"""Text from elsewhere (logs, stacks, output of probes) made fit for a message: harmless, short, the end of it."""

from __future__ import annotations

import os
import unicodedata

TAIL_LINES = 15
"""Enough for an exception with its innermost frames; the whole log is named beside it."""

TAIL_BYTES = 65536
"""A log may hold gigabytes of warnings; its last 64 KiB hold any traceback."""

LINE_WIDTH = 300
"""A compiler's command line or a dumped tensor must not fill a terminal."""

# Control characters drive a terminal; format characters (U+202E and its kind) reorder what is read; surrogates
# and separators break whoever writes or splits the message.
UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def harmless(text: str) -> str:
    """Return `text` with every control, format and separator character written as an escape. Tabs become a space."""
    return "".join(_escape(c) if unicodedata.category(c) in UNSAFE else c for c in text.replace("\t", " "))


def last_lines(text: str, count: int = TAIL_LINES, width: int = LINE_WIDTH) -> list[str]:
    """Return the last `count` lines that are not blank, harmless and none much longer than `width`.

    A carriage return ends a line too: a progress bar is many lines of which the last counts.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    kept = [line.rstrip() for line in lines if line.strip()][-count:] if count > 0 else []
    return [shorten(harmless(line), width) for line in kept]


def shorten(text: str, width: int = LINE_WIDTH) -> str:
    """Return `text` cut to `width` characters, with a note of how much was cut."""
    return text if len(text) <= width else f"{text[:width]}… ({len(text) - width} more characters)"


def read_tail(path: str | os.PathLike[str], limit: int = TAIL_BYTES) -> str:
    """Read the last `limit` bytes of a file as text; '' where there is no such file. Reads the file."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            return file.read(limit).decode("utf-8", errors="backslashreplace")
    except OSError:
        return ""


def _escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
