"""On which line of a TOML text a key stands. tomllib keeps values only, and an error should name the line. Pure."""

from __future__ import annotations

import re

BARE = re.compile(r"[A-Za-z0-9_-]+")
SPACE = " \t"
TRIPLES = ('"""', "'''")

Key = tuple[str, ...]


def key_lines(text: str) -> dict[Key, int]:
    """Return the line, counted from 1, of each table and each key of a valid TOML text.

    Keys inside inline tables and elements of arrays have no entry: `line_of` answers with what they stand in.
    """
    return _Scanner(text).scan()


def line_of(lines: dict[Key, int], key: Key) -> int:
    """Return the line of `key`, or of the innermost table or key around it that has one; 1 where none has."""
    for length in range(len(key), 0, -1):
        if key[:length] in lines:
            return lines[key[:length]]
    return 1


class _Scanner:
    """Walks over statements (headers and keys) and skips values."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def scan(self) -> dict[Key, int]:
        lines: dict[Key, int] = {}
        table: Key = ()
        while self._skip_blank():
            line = self._text.count("\n", 0, self._at) + 1
            before = self._at
            if self._text[self._at] == "[":
                self._at += 2 if self._text.startswith("[[", self._at) else 1
                table = self._dotted()
                for length in range(1, len(table) + 1):
                    lines.setdefault(table[:length], line)
                self._to_line_end()
            else:
                key = table + self._dotted()
                for length in range(len(table) + 1, len(key) + 1):
                    lines.setdefault(key[:length], line)
                self._skip_value()
            if self._at == before:  # no TOML: tomllib has refused it before anybody asks for a line
                break
        return lines

    def _skip_blank(self) -> bool:
        while self._at < len(self._text) and self._text[self._at] in SPACE + "\r\n#":
            if self._text[self._at] == "#":
                self._to_line_end()
            else:
                self._at += 1
        return self._at < len(self._text)

    def _dotted(self) -> Key:
        parts = []
        while True:
            self._spaces()
            start = self._at
            if self._text[start : start + 1] in ('"', "'"):
                self._string()
                parts.append(_unquoted(self._text[start : self._at]))
            else:
                match = BARE.match(self._text, start)
                self._at = match.end() if match else start
                parts.append(self._text[start : self._at])
            self._spaces()
            if self._text[self._at : self._at + 1] != ".":
                return tuple(parts)
            self._at += 1

    def _skip_value(self) -> None:
        """Skip to the end of the statement: the first line feed outside strings and brackets."""
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in "\"'":
                self._string()
                continue
            if character == "#":
                self._to_line_end()
                continue
            if character == "\n" and depth == 0:
                return
            depth += (character in "[{") - (character in "]}")
            self._at += 1

    def _string(self) -> None:
        """Skip a string of any of TOML's four kinds."""
        quote = self._text[self._at]
        ends = self._text[self._at : self._at + 3]
        end = ends if ends in TRIPLES else quote
        self._at += len(end)
        while self._at < len(self._text) and not self._text.startswith(end, self._at):
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        self._at += len(end)
        # Up to two more quotes may belong to a long string's content: `""""a""""` ends with the last.
        while len(end) == 3 and self._text.startswith(quote, self._at):
            self._at += 1

    def _spaces(self) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1

    def _to_line_end(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end


def _unquoted(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]
    # The escapes of TOML's keys that Python writes alike; others are rare enough to point at the table instead.
    return re.sub(
        r"\\u([0-9a-fA-F]{4})|\\(.)",
        lambda m: chr(int(m[1], 16)) if m[1] else {"n": "\n", "t": "\t", "r": "\r"}.get(m[2], m[2]),
        text[1:-1],
    )
