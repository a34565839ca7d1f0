"""The text of TOML files that people write: read by tomllib, with errors that name file and line. Pure.

tomllib says where TOML itself is broken, but not where a value stands that is well-formed and wrong: `places` finds
that. It also has no words for some texts, at which it fails by an error of Python's.
"""

from __future__ import annotations

import bisect
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Path", "TomlError", "line_of", "parse", "places", "written"]

Path = tuple[str | int, ...]

DEEPEST = 100
"""Tables and lists may lie so deep in each other: far more than anybody needs, and far from Python's own limit."""

TOO_DEEP = f"nested more than {DEEPEST} deep; close brackets where they end, and write shorter dotted names"
TOO_LONG = "a whole number of more than 64 bits, which TOML does not have; write a smaller one"


class TomlError(ValueError):
    """A file that can't be used. The message says file, line, key, what was expected and what was found."""


def parse(text: str, where: str) -> tuple[dict[str, Any], dict[Path, int]]:
    """Read a TOML text as plain values, and find the lines of its keys.

    Parameters
    ----------
    text
        The file's text.
    where
        The file's name, for messages.

    Returns
    -------
    tuple
        The values as tomllib gives them, and what `places` gives.

    Raises
    ------
    TomlError
        If it is no TOML, a key is written twice, a number has more than 64 bits, or it is nested too deeply.
    """
    if text.startswith("\ufeff"):
        raise TomlError(f"{where}:1: begins with a byte order mark; save it as UTF-8 without one")
    try:
        data = tomllib.loads(text)
        lines = places(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(_broken(text, where, str(error))) from error
    except (ValueError, RecursionError) as error:
        # Python refuses to read more than 4,300 digits, and brackets deeper than its own calls may go.
        what = TOO_DEEP if isinstance(error, RecursionError) else TOO_LONG
        raise TomlError(f"{where}{_line_of_failure(text, type(error))}: {what}") from error
    for path, what in _unusable(data):
        # Of a name that is too deep its beginning says enough.
        raise TomlError(f"{where}:{line_of(lines, path)}: {written(path[:4])}: {what}")
    return data, lines


def _line_of_failure(text: str, kind: type[Exception]) -> str:
    """Return ``:LINE`` of what makes tomllib fail by an error of Python's; nothing where it can't be found.

    tomllib reads from the first character to the last: every beginning of the text with that line in it fails alike.
    """
    lines = text.split("\n")

    def fails(count: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:count]))
        except (ValueError, RecursionError) as error:
            return type(error) is kind
        return False

    found = bisect.bisect_left(range(1, len(lines) + 1), True, key=fails) + 1
    return f":{found}" if found <= len(lines) else ""


def _unusable(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield where values are too long or too deep for whoever reads and prints them. Without recursion."""
    waiting: list[tuple[Path, Any]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if len(path) > DEEPEST:
            yield path, TOO_DEEP
        elif isinstance(value, dict):
            waiting += (((*path, name), inner) for name, inner in value.items())
        elif isinstance(value, list):
            waiting += (((*path, index), inner) for index, inner in enumerate(value))
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            yield path, TOO_LONG


def _broken(text: str, where: str, message: str) -> str:
    found = re.search(r" \(at line (\d+), column \d+\)$", message)
    if found is None:
        return f"{where}: {message}"
    number = int(found[1])
    line = text.split("\n")[number - 1].strip()
    if "overwrite" in message or "declare" in message or "namespace twice" in message:
        return f"{where}:{number}: {line.partition('=')[0].strip()}: written twice; keep one of them"
    return f"{where}:{number}: {message[: found.start()]}: {line[:80]}"


def places(text: str) -> dict[Path, int]:
    """Return the line, counted from 1, of every table and key of a well-formed TOML text.

    A table of an array of tables has its index in its path: ``("occasion", 0, "date")``. Keys inside inline tables
    are found as the key that holds them.
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    statement, start = "", 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not statement and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not statement and line.lstrip().startswith("["):
            names = _header(line)
            table = _numbered(names, counts, new=line.lstrip().startswith("[["))
            found[table] = number
            for depth in range(1, len(table)):
                # Tables that are there because something lies in them have no header of their own.
                found.setdefault(table[:depth], number)
            continue
        start = start if statement else number
        statement += line + "\n"
        try:
            value = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            # A value of several lines: an array, or a text in three quotation marks.
            continue
        for path in _dotted(value, statement):
            found.setdefault((*table, *path), start)
        statement = ""
    return found


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """Return the line of a key or table, or of the innermost one around it that has one; 1 where none has."""
    return next((lines[path[:depth]] for depth in range(len(path), 0, -1) if path[:depth] in lines), 1)


def _header(line: str) -> list[str]:
    """Return the names in a table's header, taken apart by tomllib itself."""
    parsed: Any = tomllib.loads(line)
    names = []
    while parsed:
        (name, parsed), *_ = parsed.items()
        names.append(name)
        parsed = parsed[0] if isinstance(parsed, list) else parsed
    return names


def _numbered(names: list[str], counts: dict[Path, int], *, new: bool) -> Path:
    """Return a header's path, with the index of each array of tables that it lies in."""
    path: Path = ()
    for name in names[:-1]:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    path = (*path, names[-1])
    if new:
        counts[path] = counts.get(path, -1) + 1
        path = (*path, counts[path])
    return path


def _dotted(value: dict[str, Any], statement: str) -> Iterator[Path]:
    """Yield the path of a statement's key, dotted or not, and of each of its beginnings."""
    path: Path = ()
    here: Any = value
    # Only as deep as the key is written: what lies deeper is an inline table.
    depth = len(_key_names(statement))
    for _ in range(depth):
        (name, here), *_ = here.items()
        path = (*path, name)
        yield path


def _key_names(statement: str) -> list[str]:
    """Return the names in the key of a statement such as ``a."b=c" = 1``."""
    for end in (i for i, character in enumerate(statement) if character == "="):
        try:
            parsed = tomllib.loads(statement[:end] + "= 0")
        except tomllib.TOMLDecodeError:
            # This equals sign stands inside a quoted name.
            continue
        names: list[str] = []
        here: Any = parsed
        while isinstance(here, dict):
            (name, here), *_ = here.items()
            names.append(name)
        return names
    return []


def written(path: Path) -> str:
    """Write a path as it stands in a file; an index of an array of tables counts from 1."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += ("." if text else "") + (part if bare else f'"{part}"')
    return text
