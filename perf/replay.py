"""Replay a table of past throughput through the floor rule: ``python -m perf.replay FILE.csv``.

The table has the columns benchmark, framework, system, gpus, date and images_per_s; others are ignored. A
word in place of a number (ERROR, TIMEOUT, n/a) or nothing means that the run did not complete.
Prints misses and what did not complete. The status is 0 whatever was missed, since a table can't
confirm a miss; 2 if the file can't be read.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import math
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from perf.ending import finish
from perf.verdict.replay import Judged, Replay, Row, Series, replay
from perf.verdict.words import percent

__all__ = ["TableError", "describe", "main", "read_rows"]

COLUMNS = ("benchmark", "framework", "system", "gpus", "date", "images_per_s")

WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
DECIMAL_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
"""Plain ASCII numbers only: float() would also take '1_000' and 'infinity'."""


class TableError(ValueError):
    """The table can't be read; the message says at which line, what was expected and what stood there."""


def read_rows(lines: Iterable[str], name: str) -> list[Row]:
    """Read the rows of a table.

    Parameters
    ----------
    lines
        Lines of the file, opened with ``newline=""``.
    name
        What the file is called in messages.

    Raises
    ------
    TableError
        If a column is missing, or a line can't be understood.
    """
    reader = csv.DictReader(lines, strict=True, skipinitialspace=True)
    try:
        header = [column.strip() for column in reader.fieldnames or ()]
        missing = [column for column in COLUMNS if column not in header]
        if missing:
            raise TableError(
                f"{name}, line 1: no column {', '.join(missing)}; the header must name {', '.join(COLUMNS)}"
            )
        repeated = sorted({column for column in COLUMNS if header.count(column) > 1})
        if repeated:
            raise TableError(f"{name}, line 1: the column {', '.join(repeated)} stands there twice")
        reader.fieldnames = header
        return [_row(fields, f"{name}, line {reader.line_num}", reader.line_num) for fields in reader]
    except csv.Error as error:
        raise TableError(f"{name}, line {reader.reader.line_num}: not a CSV table: {error}") from error


def _row(fields: dict[str | None, str | list[str] | None], where: str, line: int) -> Row:
    if None in fields:
        raise TableError(f"{where}: more fields than columns; put quotes around a field that holds a comma")
    cells: dict[str, str] = {}
    for column in COLUMNS:
        cell = fields[column]
        if not isinstance(cell, str):
            raise TableError(f"{where}: the line ends before the column {column}")
        cells[column] = cell.strip()
    for column in ("benchmark", "system"):
        if not cells[column]:
            raise TableError(f"{where}: {column} is empty")
    if not WHOLE_NUMBER.fullmatch(cells["gpus"]) or int(cells["gpus"]) < 1:
        raise TableError(f"{where}: gpus must be a whole number of at least 1, got {cells['gpus']!r}")
    rate, outcome = _rate(cells["images_per_s"], where)
    return Row(
        line=line,
        series=Series(cells["benchmark"], cells["system"], int(cells["gpus"])),
        stack=cells["framework"],
        date=_date(cells["date"], where),
        rate=rate,
        outcome=outcome,
    )


def _date(text: str, where: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise TableError(f"{where}: date must be written as 2026-11-27, got {text!r}") from None


def _rate(text: str, where: str) -> tuple[float | None, str]:
    """Return the rate, or None and the word that stands in its place."""
    if not any(character.isdigit() for character in text):
        return None, text
    rate = float(text) if DECIMAL_NUMBER.fullmatch(text) else math.nan
    if not (math.isfinite(rate) and rate > 0.0):
        raise TableError(
            f"{where}: images_per_s must be a positive number with a point for decimals, or a word such as ERROR "
            f"if the run did not complete; got {text!r}"
        )
    return rate, ""


def describe(result: Replay) -> list[str]:
    """Return the lines that tell what a replay gave."""
    misses = result.misses
    lines = [_miss(one) for one in misses]
    for row in result.incomplete:
        word = f" ({_plain(row.outcome)})" if row.outcome else ""
        lines.append(f"did not complete   line {row.line}: {_name(row)}{word}")
    provisional = sum(one.floor.provisional for one in misses)
    lines.append(
        f"{_count(len(result.judged), 'judgement')}, {_count(len(misses), 'miss', 'misses')} "
        f"({provisional} provisional), {len(result.incomplete)} did not complete, "
        f"{len(result.first)} with nothing earlier to hold them against."
    )
    lines.append(
        "Waived: the 5 launches an occasion that a reference needs. A miss is not confirmed, so it is no fail."
    )
    return lines


def _miss(one: Judged) -> str:
    floor = one.floor
    kind = "miss, provisional" if floor.provisional else "miss again" if one.again else "miss"
    where = ", ".join(f"{row.line}" for row in one.rows)
    return (
        f"{kind:<18} line {where}: {_name(one.rows[0])}: {one.rate:.2f} images/s, {percent(-one.change)} below "
        f"{floor.centre:.2f}; the floor is {floor.bound:.2f} ({_count(floor.occasions, 'earlier occasion')}: "
        f"{', '.join(floor.dates)})"
    )


def _name(row: Row) -> str:
    series = row.series
    return _plain(
        f"{series.benchmark} x{series.gpus} on {series.system}, {row.date}, {row.stack or 'unknown stack'}"
    )


def _plain(text: str) -> str:
    """Escape what a terminal could take for a command."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the file, replay it and print what it gave."""
    parser = argparse.ArgumentParser(prog="python -m perf.replay", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE.csv", help="the table of past throughput")
    path: Path = parser.parse_args(arguments).file
    name = _plain(str(path))
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = read_rows(lines, name)
    except TableError as error:
        print(f"error: {_plain(str(error))}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {name} can't be read: {error.strerror}", file=sys.stderr)
        return 2
    except UnicodeDecodeError as error:
        print(f"error: {name} is not UTF-8 text: byte {error.start} can't be decoded", file=sys.stderr)
        return 2
    print("\n".join(describe(replay(rows))))
    return 0


if __name__ == "__main__":
    finish(main)
