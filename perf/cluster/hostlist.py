"""Slurm's short form of node names: ``n[1-3,7],login1`` for n1, n2, n3, n7 and login1. Pure."""

from __future__ import annotations

import re

MOST = 100_000
"""Names. The largest clusters have some ten thousand nodes; a range of a billion is no list of nodes."""

_BRACKETS = re.compile(r"\[([^\][]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class NoHostlist(ValueError):
    """A text that is no list of nodes. The message says what was expected."""


def expanded(text: str) -> list[str]:
    """Return the names that a host list stands for, in its order; none for an empty one.

    Several brackets in a name are expanded from the left (``r[1-2]n[1-2]``); digits keep their zeros (``n[08-10]``).

    Raises
    ------
    NoHostlist
        If a bracket holds anything but numbers and ranges, or is not closed, or there are more names than `MOST`.
    """
    names: list[str] = []
    for part in _parts(text):
        names += _names(part, MOST - len(names))
    return names


def _parts(text: str) -> list[str]:
    """Split a list at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part for part in [*parts, text[start:]] if part]


def _names(part: str, most: int) -> list[str]:
    found = _BRACKETS.search(part)
    if found is None:
        if "[" in part or "]" in part:
            raise NoHostlist(f"{part!r}: a bracket is not closed; expected a list such as n[1-3,7]")
        return [part]
    names: list[str] = []
    for number in _numbers(found[1], part, most):
        names += _names(part[: found.start()] + number + part[found.end() :], most - len(names))
    return names


def _numbers(inside: str, part: str, most: int) -> list[str]:
    numbers: list[str] = []
    for word in inside.split(","):
        ends = _RANGE.fullmatch(word)
        if ends is None:
            raise NoHostlist(
                f"{part!r}: {word!r} is no number and no range; expected a list such as n[1-3,7]"
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not 0 <= last - first < most - len(numbers):
            raise NoHostlist(f"{part!r}: the range {word} is empty or names more than {MOST} nodes")
        numbers += [str(number).zfill(len(ends[1])) for number in range(first, last + 1)]
    return numbers
