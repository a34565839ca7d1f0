"""`python -m perf.cluster lint SCRIPT…`: 0 without findings, 1 with, 2 where a script can't be read."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from perf.cluster.lint import Finding, lint
from perf.report.text import fit, out_of_reach

JSON_SCHEMA = 1
"""Raised when a key of ``--json`` changes its meaning or goes away."""

LARGEST = 1_000_000
"""Bytes. Slurm itself takes no script above 4 MB (max_script_size, slurm.conf(5)); nobody writes one that long."""

FOUND, USAGE = 1, 2


def main(words: Sequence[str]) -> int:
    """Check the scripts that the words name, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.cluster lint",
        description="Reads batch scripts for Slurm or LSF, runs nothing, and says which known traps they have. "
        "What each finding means: docs/job-scripts.md. Ends with 0 without findings, 1 with, 2 where a script "
        "can't be read.",
    )
    parser.add_argument(
        "scripts", nargs="+", metavar="SCRIPT", help="a batch script, or - for standard input"
    )
    parser.add_argument("--json", action="store_true", help="print findings as JSON")
    options = parser.parse_args(words)
    findings: list[tuple[str, Finding]] = []
    for name in options.scripts:
        try:
            text = read(name)
        except (OSError, ValueError) as error:
            said = out_of_reach(name, error, "read") if isinstance(error, OSError) else str(error)
            print(f"error: {fit(said, sys.stderr.encoding)}", file=sys.stderr)
            return USAGE
        findings += [(name, finding) for finding in lint(text)]
    if options.json:
        rows = [{"script": name, **dataclasses.asdict(finding)} for name, finding in findings]
        # ASCII, so that any locale can write it.
        print(json.dumps({"schema": JSON_SCHEMA, "scripts": options.scripts, "findings": rows}, indent=2))
    else:
        for name, finding in findings:
            print(fit(as_text(name, finding), sys.stdout.encoding, keep_lines=True))
        if not findings:
            print("no known trap found")
    return FOUND if findings else 0


def read(name: str) -> str:
    """Return the text of a script.

    Raises
    ------
    OSError
        It can't be read.
    ValueError
        It is too large to be a script, or binary.
    """
    if name == "-":
        content = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with Path(name).open("rb") as file:
            content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{name} is larger than {LARGEST} bytes. Name the batch script itself.")
    if b"\0" in content:
        raise ValueError(f"{name} holds zero bytes: it is a program or data. Name the batch script itself.")
    return content.decode("utf-8", errors="replace")


def as_text(name: str, finding: Finding) -> str:
    """Return a finding as people read it: where and what, and below it why and what to write instead."""
    # A line feed inside a quoted word would begin a line of its own.
    what, why, remedy = (" ".join(part.split()) for part in (finding.what, finding.why, finding.remedy))
    place = " ".join(name.splitlines())
    return f"{place}:{finding.line}: {finding.name}: {what}\n    Why: {why}.\n    Write: {remedy}"
