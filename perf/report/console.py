"""The console that tables are drawn on: rich's, with the width that the terminal or ``COLUMNS`` gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO

from rich.console import Console

from perf.whole import whole

__all__ = ["make_console"]


def make_console(file: IO[str] | None = None) -> Console:
    """Return a console that writes to `file`, or to the standard output of the moment if None."""
    return Console(file=file, highlight=False, _environ=usable(os.environ))


def usable(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without a size that is no positive number.

    rich draws nothing in 0 columns; to argparse and pytest it is as if nothing was set, and so it is here.
    """
    return {
        name: value
        for name, value in environment.items()
        if name not in ("COLUMNS", "LINES") or (whole(value) or 0) > 0
    }
