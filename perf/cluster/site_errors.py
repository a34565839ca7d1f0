"""Errors of a site file: where in the file, what was expected, and the nearest word that would have been right."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from perf.launch.text import harmless
from perf.tomlfile import Path as Key
from perf.tomlfile import closest, line_of


class SiteError(ValueError):
    """A site file that can't be used. The message names file, line and key, what was expected and what to do."""


class Place:
    """Where the keys of one file are, for errors."""

    def __init__(self, path: str, lines: Mapping[Key, int]) -> None:
        self._path = path
        self._lines = dict(lines)

    def error(self, key: Key, what: str) -> SiteError:
        """Return the error that says `what` of a key."""
        where = f"{self._path}:{line_of(self._lines, key)}"
        return SiteError(
            f"{where}: {harmless('.'.join(map(str, key)))}: {what}" if key else f"{where}: {what}"
        )

    def convert(self, kind: Any, value: dict[str, Any], key: Key) -> Any:
        """Build one table; its errors name the key inside it."""
        fields = [field.name for field in msgspec.structs.fields(kind)]
        for name in value:
            if name not in fields:
                raise self.error(
                    (*key, name), f"unknown key{nearest(name, fields)}; it has {', '.join(fields)}"
                )
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            what, _, inside = str(error).partition(" - at `$")
            parts = re.findall(r"[A-Za-z_]\w*", inside)
            raise self.error((*key, *parts), f"{what}{_hint(what, value, parts, kind)}") from error


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean ...?`` with the nearest known word, or nothing where none is near."""
    found = closest(word, known)
    return f"; did you mean {found!r}?" if found else ""


def _hint(what: str, value: Mapping[str, Any], parts: list[str], kind: type) -> str:
    """Return the nearest known word where one of a few was expected."""
    if not what.startswith("Invalid enum value") or not parts:
        return ""
    found = value.get(parts[0])
    known = [word for word in _leaves(typing.get_type_hints(kind).get(parts[0])) if isinstance(word, str)]
    return f"{nearest(str(found), known)}; expected one of {', '.join(known)}"


def _leaves(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation is made of: the words of a ``Literal``, also inside ``| None``."""
    for part in typing.get_args(annotation):
        yield part
        yield from _leaves(part)
