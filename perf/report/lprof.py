"""Reading line_profiler's ``.lprof`` files without running what is in them.

Such a file is a pickle, and a pickle can call anything. A report may be drawn from a folder that somebody else made,
so only the one class that line_profiler writes is let through, as a plain container. This also reads the files of
the stack's own line_profiler, whatever its version, without line_profiler being installed on the driver's side.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["LineStats", "ProfileError", "load_stats"]

# line_profiler 5 writes the first, 4 and older the second; the attributes are the same.
_ALLOWED = {("line_profiler.line_profiler", "LineStats"), ("line_profiler._line_profiler", "LineStats")}

_Function = tuple[str, int, str]
_Line = tuple[int, int, float]


class ProfileError(ValueError):
    """A line profile that can't be had. The message names file, rank and reason."""


class LineStats:
    """What line_profiler measured: the same two attributes as its own class of this name.

    Attributes
    ----------
    timings
        By function (file, first line, name): a list of (line, hits, time in units).
    unit
        Seconds per unit of time.
    """

    timings: dict[_Function, list[_Line]]
    unit: float


class _OnlyLineStats(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED:
            return LineStats
        raise pickle.UnpicklingError(f"it wants to load {module}.{name}, which no line profile holds")


def load_stats(path: Path, rank: int) -> LineStats:
    """Read one ``.lprof`` file, as ``line_profiler.load_stats`` would.

    Raises
    ------
    ProfileError
        If the file is missing, can't be read, or holds something else; names file and rank.
    """
    where = f"line profile of rank {rank}: {path}"
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ProfileError(f"{where} is missing; the rank may have ended before it wrote it") from error
    except OSError as error:
        raise ProfileError(f"{where} can't be read ({error.strerror or error})") from error
    try:
        stats = _OnlyLineStats(io.BytesIO(data)).load()
    # A damaged pickle raises whatever its bytes happen to ask for.
    except Exception as error:
        raise ProfileError(f"{where} is no line profile, or was cut short ({error})") from error
    if not isinstance(stats, LineStats) or not _well_formed(vars(stats)):
        raise ProfileError(
            f"{where} does not hold timings by function and a unit, as line_profiler writes them"
        )
    return stats


def _well_formed(attributes: Mapping[str, Any]) -> bool:
    timings, unit = attributes.get("timings"), attributes.get("unit")
    return (
        isinstance(unit, (int, float))
        and unit > 0
        and isinstance(timings, dict)
        and all(
            _is_function(key) and isinstance(lines, list) and all(map(_is_line, lines))
            for key, lines in timings.items()
        )
    )


def _is_function(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 3 and [type(part) for part in key] == [str, int, str]


def _is_line(line: Any) -> bool:
    return (
        isinstance(line, tuple)
        and len(line) == 3
        and isinstance(line[0], int)
        and isinstance(line[1], int)
        and isinstance(line[2], (int, float))
    )
