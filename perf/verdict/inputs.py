"""Checks of what the rules are given; a bad number stops here, with its place."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["check_cap", "finite_values", "positive_logs"]


def positive_logs(values: Sequence[float], side: str, unit: str = "") -> list[float]:
    """Return the natural logarithms of launch values.

    Raises
    ------
    ValueError
        If a value is not positive and finite; says which side and launch (counted from 1).
    """
    for place, value in enumerate(values, start=1):
        if not (math.isfinite(value) and value > 0.0):
            shown = f"{value!r} {unit}".rstrip()
            raise ValueError(
                f"{side}, launch {place} of {len(values)}: {shown} is not a positive, finite number"
            )
    return [math.log(value) for value in values]


def finite_values(values: Sequence[float], side: str) -> list[float]:
    """Return launch values as a list.

    Raises
    ------
    ValueError
        If a value is not finite; says which side and launch (counted from 1).
    """
    for place, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise ValueError(f"{side}, launch {place} of {len(values)}: {value!r} is not a finite number")
    return list(values)


def check_cap(cap: int) -> int:
    """Return `cap`, the launches a side that can be afforded.

    Raises
    ------
    ValueError
        If it is below 1. Above 16 is allowed and changes nothing: there is no later look.
    """
    if cap < 1:
        raise ValueError(
            f"cap is the number of launches a side that the profile affords: at least 1, got {cap}"
        )
    return cap
