"""What differs between two stacks: versions, torch's defaults, variables. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["ABSENT", "DIFFERENCE_COLUMNS", "flat", "setting_differences", "stack_differences"]

ABSENT = "–"

DIFFERENCE_COLUMNS = ("fact", "old stack", "new stack")

_UNTOLD = ("passed_over", "gpus", "line_profiler")
"""Facts that say how a stack was found, what the machine has, and what can be profiled: no property of the stack."""

_MEASURED = ("product_error", "first_batch", "compiled.seconds", "precision.scaler.scale")
"""What is read back beside settings and is a measurement: it differs from launch to launch."""


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Name every leaf of nested data by its path, with its value as text: ``stack.cuda``, ``stack.gpus.0.name``."""
    if isinstance(value, Mapping):
        parts = [flat(item, f"{prefix}{key}.") for key, item in value.items()]
    elif isinstance(value, list):
        parts = [flat(item, f"{prefix}{place}.") for place, item in enumerate(value)]
    else:
        return {prefix.removesuffix("."): "null" if value is None else str(value)}
    return {key: item for part in parts for key, item in part.items()}


def stack_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what two stacks said of themselves and do not agree on: fact, old, new. Versions come first.

    Parameters
    ----------
    old, new
        Facts of a stack (``environment.json``: ``against`` and ``stack``).
    """
    return _differences(
        *(flat({k: v for k, v in side.items() if k not in _UNTOLD}) for side in (old, new)),
    )


def setting_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the settings in force on which two launches of one variant do not agree: name, old, new.

    Parameters
    ----------
    old, new
        ``effective`` of a rank of each side.
    """
    sides = [
        {key: value for key, value in flat(side).items() if not key.startswith(_MEASURED)}
        for side in (old, new)
    ]
    return _differences(*sides)


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str, str]]:
    keys = dict.fromkeys((*old, *new))
    return [
        (key, old.get(key, ABSENT), new.get(key, ABSENT))
        for key in keys
        if old.get(key, ABSENT) != new.get(key, ABSENT)
    ]
