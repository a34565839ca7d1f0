"""TOML files that people write: typed values, and errors that name file, line and key. Pure: text in, values out.

`Section` hands values out one by one, so that what nobody asked for is found as an unknown key.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Iterable
from typing import Any

from perf.tomltext import Path, TomlError, line_of, parse, places, written

__all__ = ["Path", "Section", "TomlError", "closest", "line_of", "load", "nearest", "places"]

_MISSING: Any = object()


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
        As `perf.tomltext.parse`.
    """
    data, lines = parse(text, where)
    return Section(data, (), lines, where)


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
            f"{self._where}:{line_of(self._lines, path)}: {written(path) or 'the file'}: {message}"
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
