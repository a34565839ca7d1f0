"""Results that somebody kept in a CSV file: ``benchmark,framework,system,gpus,date,images_per_s``. Reads files."""

from __future__ import annotations

import csv
import datetime
import io
import math
from pathlib import Path
from typing import Any

from perf.replay import DECIMAL_NUMBER
from perf.report.history.observations import Observation, with_ratios
from perf.whole import whole

__all__ = ["COLUMNS", "CsvError", "read_csv"]

COLUMNS = ("benchmark", "framework", "system", "gpus", "date", "images_per_s")

SYNTHETIC = "synthetic"
"""What a benchmark is called that trains on made-up data: ``DDP, synthetic`` beside ``DDP, Imagenet data``."""


class CsvError(ValueError):
    """A file that is no such table. The message says where and what was expected."""


class _NoObservation(ValueError):
    """A line that holds none. The message names the column, and says what was expected."""


def read_csv(path: Path) -> tuple[list[Observation], list[str]]:
    """Return the file's observations, and a note for each line that holds none.

    Raises
    ------
    CsvError
        If a column is missing, or it is no UTF-8.
    OSError
        If the file can't be read.
    """
    notes: list[str] = []
    found: dict[tuple[str, str, float], list[Observation]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        try:
            text = file.read()
        except UnicodeDecodeError as error:
            raise CsvError(f"{path}: is no UTF-8 ({error.reason}); save it as UTF-8") from error
        reader = csv.DictReader(io.StringIO(text, newline=""))
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise CsvError(f"{path}:1: no column {', '.join(missing)}; expected {','.join(COLUMNS)}")
        for row in reader:
            try:
                one = _observation(row, path.name)
            except _NoObservation as error:
                notes.append(f"{path}:{reader.line_num}: left out: {error}")
                continue
            found.setdefault((one.system, one.stack, one.when), []).append(one)
    return [one for together in found.values() for one in with_ratios(_fed(together))], notes


def _observation(row: dict[str, Any], source: str) -> Observation:
    for column in COLUMNS:
        if row[column] is None:
            raise _NoObservation(f"the line ends before the column {column}")
    gpus = whole(row["gpus"])
    if not gpus:
        raise _NoObservation(f"gpus is {row['gpus']!r:.40}, expected a whole number of at least 1")
    try:
        day = datetime.date.fromisoformat(row["date"].strip())
    except ValueError:
        raise _NoObservation(f"date is {row['date']!r:.40}, expected a day such as 2026-11-27") from None
    when = datetime.datetime.combine(day, datetime.time(), datetime.UTC).timestamp()
    text = row["images_per_s"].strip()
    rate = float(text) if DECIMAL_NUMBER.fullmatch(text) else math.nan
    if not (math.isfinite(rate) and rate > 0.0):
        raise _NoObservation(f"images_per_s is {row['images_per_s']!r:.40}, expected a number above 0")
    return Observation(
        when=when,
        system=row["system"],
        topic="",
        variant=f"{row['benchmark']}, {gpus} GPU{'s' if gpus > 1 else ''}",
        stack=row["framework"],
        throughput=rate,
        run=source,
        family=row["benchmark"],
        devices=gpus,
    )


def _fed(together: list[Observation]) -> list[Observation]:
    """Name the synthetic benchmark that each one with real data has beside it: by the words before the first comma."""
    synthetic = {
        (one.family.partition(",")[0], one.devices): one.variant
        for one in together
        if one.family.partition(", ")[2].split(" ")[0] == SYNTHETIC and one.family.count(",") == 1
    }
    return [
        Observation(**{**vars(one), "fed": fed})
        if (fed := synthetic.get((one.family.partition(",")[0], one.devices), one.variant)) != one.variant
        and one.family.count(",") == 1
        else one
        for one in together
    ]
