"""The commands of a cluster: ``python -m perf.cluster lint SCRIPT``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from perf.cluster.lint import command as lint_command

COMMANDS = (lint_command,)
"""Modules with `add_to(subcommands)`, which sets `run` to a function of the options that returns the status."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m perf.cluster", description=__doc__)
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(subcommands)
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
