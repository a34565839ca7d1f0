"""Links from a report to the files of its runs: relative, quoted, and only to what is there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

__all__ = ["relative"]


def relative(target: Path, runs: Sequence[Path], folder: Path) -> str:
    """Return a link from a page in `folder` to a file or folder of a run; '' where there is none to link to.

    A path in a record may be anything, so what lies outside the runs' folders is never linked to. A run that was moved
    since is found by the part of the path from ``launches`` or ``profiles`` on.
    """
    for candidate in _candidates(target, runs):
        resolved = candidate.resolve()
        if any(resolved.is_relative_to(run.resolve()) for run in runs) and resolved.exists():
            # A relative path beginning with a word and a colon would be taken for a scheme.
            return quote("./" + os.path.relpath(resolved, folder.resolve()))
    return ""


def _candidates(target: Path, runs: Sequence[Path]) -> list[Path]:
    found = [target] if target.is_absolute() else []
    parts = target.parts
    for run in runs:
        if not target.is_absolute():
            found.append(run / target)
        found += [
            run.joinpath(*parts[parts.index(name) :]) for name in ("launches", "profiles") if name in parts
        ]
    return found
