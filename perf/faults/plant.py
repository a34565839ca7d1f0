"""Planting a fault: the environment of the worker, and marks that no planted launch can lose."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from perf.contract import LaunchRecord
from perf.faults.catalogue import FAULTS

INJECT = Path(__file__).resolve().parent / "inject"
"""Its ``sitecustomize`` is loaded by Python before anything else."""

VARIABLE = "STACKPROOF_PLANT"

FLAG = "planted: "


class NoSuchFault(ValueError):
    """The catalogue has no fault of that name. The message names the nearest ones."""


def check_name(name: str) -> str:
    """Return the name of a fault.

    Raises
    ------
    NoSuchFault
        If the catalogue has none of that name.
    """
    if name in FAULTS:
        return name
    import difflib

    near = difflib.get_close_matches(name, FAULTS, n=3) or sorted(FAULTS)
    raise NoSuchFault(
        f"there is no fault {name!r} to plant; {'the nearest' if len(near) < 4 else 'all'}: {', '.join(near)}"
    )


def planted_environment(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment with a fault in it."""
    fault = FAULTS[check_name(name)]
    found = {**environ, **dict(fault.environment)}
    if fault.injected:
        path = environ.get("PYTHONPATH", "")
        found["PYTHONPATH"] = os.pathsep.join([str(INJECT), *([path] if path else [])])
        found[VARIABLE] = fault.name
    return found


def mark(record: LaunchRecord, name: str) -> LaunchRecord:
    """Return a launch's record with the mark of what was planted in it."""
    return dataclasses.replace(record, flags=[*record.flags, f"{FLAG}{name}"])


def planted(record: LaunchRecord) -> str | None:
    """Return the fault that was planted in a launch; None for an honest one. A planted one is never a reference."""
    return next((flag.removeprefix(FLAG) for flag in record.flags if flag.startswith(FLAG)), None)
