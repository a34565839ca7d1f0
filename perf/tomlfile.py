"""TOML files that people write: typed values, and errors that name file, line and key. Pure: text in, values out.

tomllib says where TOML itself is broken, but not where a value stands that is well-formed and wrong. `places` finds
that, and `Section` hands values out one by one, so that what nobody asked for is found as an unknown key.
"""

from __future__ import annotations

import datetime
import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["Path", "Section", "TomlError", "closest", "line_of", "load", "nearest", "places"]

Path = tuple[str | int, ...]

_MISSING: Any = object()


class TomlError(ValueError):
    """A file that can't be used. The message says file, line, key, what was expected and what was found."""


def load(text: str, where: str) -> Section:
    """Read a TOML text.

    Parameters
    ----------
    text
        The file's text.
    where
        The file's name, for messages.

    Raises
    ------
    TomlError
        If it is no TOML, or a key is written twice.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(_broken(text, where, str(error))) from error
    return Section(data, (), places(text), where)


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


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like `word`; None where none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)), None)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word that is most like `word`, or at all of them."""
    candidates = sorted(known)
    found = closest(word, candidates)
    if found is not None:
        return f"did you mean {found!r}?"
    if not candidates or len(candidates) > 20:
        return "it is not known"
    return f"known are {', '.join(candidates)}"


class Section:
    """One table of a file, whose values are taken by key and checked.

    Parameters
    ----------
    data
        The table.
    path
        Its names in the file, from the outside in.
    lines
        What `places` gave for the file.
    where
        The file's name.
    """

    def __init__(self, data: dict[str, Any], path: Path, lines: dict[Path, int], where: str) -> None:
        self._data = data
        self._path = path
        self._lines = lines
        self._where = where
        self._taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._data

    @property
    def names(self) -> list[str]:
        """The keys of this table, in the order of the file."""
        return list(self._data)

    @property
    def line(self) -> int:
        """The line in which this table begins."""
        return line_of(self._lines, self._path)

    def error(self, key: str | None, message: str) -> TomlError:
        """Return the error that says what is wrong with a key, or with the table itself."""
        path = self._path if key is None else (*self._path, key)
        return TomlError(
            f"{self._where}:{line_of(self._lines, path)}: {_written(path) or 'the file'}: {message}"
        )

    def text(self, key: str, default: Any = _MISSING) -> Any:
        """Return a text that is not empty."""
        return self._take(
            key, default, "a text in quotation marks", lambda v: isinstance(v, str) and v.strip()
        )

    def flag(self, key: str, default: Any = _MISSING) -> Any:
        """Return true or false."""
        return self._take(key, default, "true or false", lambda v: isinstance(v, bool))

    def whole(self, key: str, default: Any = _MISSING, *, least: int = 0) -> Any:
        """Return a whole number of at least `least`."""
        return self._take(
            key,
            default,
            f"a whole number of at least {least}",
            lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least,
        )

    def number(
        self, key: str, default: Any = _MISSING, *, above: float | None = None, least: float | None = None
    ) -> Any:
        """Return a finite number, above `above` and at least `least`, as a float."""
        words = "a number"
        words += "" if above is None else f" above {above:g}"
        words += "" if least is None else f" of at least {least:g}"
        found = self._take(
            key,
            default,
            words,
            lambda v: _is_number(v) and (above is None or v > above) and (least is None or v >= least),
        )
        return float(found) if _is_number(found) else found

    def date(self, key: str, default: Any = _MISSING) -> Any:
        """Return a date, written without quotation marks."""

        def is_date(value: Any) -> bool:
            return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)

        return self._take(key, default, "a date such as 2026-11-28, without quotation marks", is_date)

    def texts(self, key: str, default: Any = _MISSING) -> Any:
        """Return a list of texts."""
        return self._take(
            key,
            default,
            "a list of texts",
            lambda v: isinstance(v, list) and all(isinstance(item, str) for item in v),
        )

    def numbers(self, key: str, *, above: float, least: int) -> list[float]:
        """Return a list of at least `least` finite numbers above `above`."""
        found = self._take(
            key,
            _MISSING,
            f"a list of at least {least} numbers above {above:g}",
            lambda v: isinstance(v, list) and len(v) >= least and all(_is_number(n) and n > above for n in v),
        )
        return [float(number) for number in found]

    def table(self, key: str) -> Section | None:
        """Return a table within this one; None where there is none."""
        found = self._take(key, None, "a table", lambda v: isinstance(v, dict))
        return None if found is None else Section(found, (*self._path, key), self._lines, self._where)

    def tables(self, key: str) -> list[Section]:
        """Return the tables of an array of tables; none where there is no such array."""
        found = self._take(
            key,
            [],
            f"tables, each headed [[{key}]]",
            lambda v: isinstance(v, list) and all(isinstance(item, dict) for item in v),
        )
        return [
            Section(item, (*self._path, key, i), self._lines, self._where) for i, item in enumerate(found)
        ]

    def plain(self, key: str) -> dict[str, Any]:
        """Return an inline table whose values are texts, numbers, true or false."""
        found: dict[str, Any] = self._take(
            key,
            _MISSING,
            "a table of texts, numbers, true and false",
            lambda v: isinstance(v, dict) and all(isinstance(i, (str, int, float, bool)) for i in v.values()),
        )
        return found

    def finish(self) -> None:
        """Refuse keys that nobody asked for.

        Raises
        ------
        TomlError
            With the nearest key that is known.
        """
        for key in self._data:
            if key not in self._taken:
                raise self.error(key, f"unknown key; {nearest(key, self._taken)}")

    def _take(self, key: str, default: Any, expected: str, fits: Any) -> Any:
        self._taken.add(key)
        if key not in self._data:
            if default is _MISSING:
                raise self.error(None, f"lacks the key {key!r}: {expected}")
            return default
        value = self._data[key]
        if not fits(value):
            raise self.error(key, f"expected {expected}, got {value!r}")
        return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _written(path: Path) -> str:
    """Write a path as it stands in a file; an index of an array of tables counts from 1."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += ("." if text else "") + (part if bare else f'"{part}"')
    return text
