"""Text for people: numbers with their units, and foreign text made safe to print.

Variant ids, host names and log lines come from outside. They are printed as data: control characters are shown as
escapes, nothing is read as markup, and what the output's encoding lacks is replaced by something that it has.
"""

from __future__ import annotations

import math
import unicodedata

__all__ = [
    "MISSING",
    "bounded",
    "clean",
    "duration",
    "fit",
    "interval",
    "memory",
    "milliseconds",
    "number",
    "out_of_reach",
    "share",
]

MISSING = "–"
"""Stands where there is no value. A reading that could not be had is never written as 0."""

_MOST_DECIMALS = 9
"""Nothing that is measured here is known better than to one part in a thousand million."""

# Other, control / format (bidirectional overrides, zero width) / surrogate; line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

_PLAIN_GLYPHS = {
    "–": "-",
    "—": "-",
    "−": "-",
    "±": "+-",
    "×": "x",
    "÷": "/",
    "…": "...",
    "·": "|",
    "✓": "+",
    "✗": "X",
    "○": "o",
}


def clean(text: str, keep_lines: bool = False) -> str:
    """Return `text` with control and invisible characters shown as escapes; a tab becomes four spaces.

    Parameters
    ----------
    text
        Anything, also terminal sequences and lone surrogates.
    keep_lines
        Leave line feeds as they are.
    """
    text = text.replace("\t", "    ")
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in _UNSAFE and not (keep_lines and character == "\n")
        else character
        for character in text
    )


def fit(text: str, encoding: str, keep_lines: bool = False) -> str:
    """Return `text`, cleaned, in characters that `encoding` can write.

    The suite's own signs have plain stand-ins; any other character that is missing there becomes an escape.
    """
    text = clean(text, keep_lines)
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        pass
    except LookupError:
        encoding = "ascii"
    plain = "".join(_PLAIN_GLYPHS.get(character, character) for character in text)
    return plain.encode(encoding, errors="backslashreplace").decode(encoding)


def out_of_reach(path: object, error: OSError, done: str = "written") -> str:
    """Say which file can't be read or written and why, without the system's number for it.

    Parameters
    ----------
    path
        As whoever reads this knows it; the error itself may name a temporary file, or one far below.
    error
        What the system said.
    done
        What was tried: 'written' or 'read'.
    """
    return f"{path} can't be {done}: {error.strerror or error}"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with `digits` significant digits, without an exponent from 0.0001 up.

    All digits before the point are kept, however many; nothing at all (None, NaN, infinity) is `MISSING`.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0.0:
        return "0"
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{_decimals(value, digits)}f}"


def bounded(
    estimate: float | None, low: float | None, high: float | None, limit: float | None
) -> tuple[str, str, str, str]:
    """Write an estimate, its bounds and its limit with the same decimals, so that they can be compared by eye.

    The interval's width gets two significant digits; without one, the largest value gets four. Up to two more
    decimals keep a bound and a limit that differ from being written alike.
    """
    values = [
        value if value is not None and math.isfinite(value) else None
        for value in (estimate, low, high, limit)
    ]
    first, lower, upper, border = values
    width = None if lower is None or upper is None else abs(upper - lower)
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    if width:
        decimals = min(_decimals(width, 2), _MOST_DECIMALS)
    elif largest:
        decimals = min(_decimals(largest, 4), _MOST_DECIMALS)
    else:
        decimals = 0
    for _ in range(2):
        different = [value for value in values[:3] if value is not None and value != border]
        if _fixed(border, decimals) in [_fixed(value, decimals) for value in different]:
            decimals = min(decimals + 1, _MOST_DECIMALS)
    return _fixed(first, decimals), _fixed(lower, decimals), _fixed(upper, decimals), _fixed(border, decimals)


def interval(
    estimate: float | None, low: float | None, high: float | None, limit: float | None, unit: str
) -> str:
    """Write ``estimate [low–high] unit``; with 'to' in place of the dash where a sign could be misread.

    `limit` is not written; it has a say in the decimals (`bounded`).
    """
    middle, lower, upper, _ = bounded(estimate, low, high, limit)
    if {middle, lower, upper} == {MISSING}:
        return MISSING
    written = middle
    if (lower, upper) != (MISSING, MISSING):
        bounds = [bound if bound != MISSING else "?" for bound in (lower, upper)]
        dash = " to " if any(bound.startswith("-") for bound in bounds) else "–"
        written = f"{middle} [{dash.join(bounds)}]"
    return f"{written} {unit}" if unit else written


def milliseconds(seconds: float | None, digits: int = 4) -> str:
    """Write seconds as milliseconds, without the unit."""
    return number(None if seconds is None else seconds * 1e3, digits)


def share(fraction: float | None) -> str:
    """Write a fraction as a percentage: 0.0312 becomes '3.1 %'."""
    return MISSING if fraction is None or not math.isfinite(fraction) else f"{100.0 * fraction:.1f} %"


def memory(size: float | None) -> str:
    """Write a number of bytes in MiB, or in GiB from 1 GiB up."""
    if size is None or not math.isfinite(size):
        return MISSING
    mebibytes = size / 2**20
    return f"{mebibytes / 1024:.2f} GiB" if mebibytes >= 1024 else f"{mebibytes:.1f} MiB"


def duration(seconds: float | None) -> str:
    """Write a time span as people say it: '0.4 s', '8 s', '2 min 05 s', '3 h 10 min'."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    seconds = max(0.0, seconds)
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _fixed(value: float | None, decimals: int) -> str:
    """Write a number with so many decimals, without a sign if all of them are zero."""
    if value is None:
        return MISSING
    written = f"{value:.{decimals}f}"
    return written.lstrip("-") if float(written) == 0.0 else written


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals give a value other than 0 `digits` significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))
