"""Planting one fault for real and looking who catches it: a launch, or an inner run of pytest."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf import contract
from perf.catalogue import GROUPS, Member
from perf.faults.fault import LAUNCH, Fault
from perf.faults.plant import planted_environment
from perf.faults.selfcheck import beside
from perf.faults.selfcheck.results import Row
from perf.launch.failure import LaunchFailed, NotAvailable
from perf.launch.launcher import launch
from perf.launch.stack import Stack
from perf.launch.text import harmless, shorten
from perf.machine import REPOSITORY
from perf.profiles import PROFILES
from perf.suite.outcomes import EXIT_FAILED, EXIT_INVALID
from perf.suite.plan import Context, build_spec

__all__ = ["Where", "carry", "command", "member_of", "spec_of", "times_detectable"]

STATUSES = {"fail": EXIT_FAILED, "invalid": EXIT_INVALID}

RUN_SECONDS = 1800.0
"""A judgement of two sides at 10 launches each takes some ten minutes on two slow cores that others use too."""

MOST_SAID = 400
"""Characters of what was said that a row keeps."""


@dataclass(frozen=True)
class Where:
    """What a self-check runs in: the stack, the device (``cpu``, ``cuda``), a folder of its own, cores and data."""

    stack: Stack
    device: str
    folder: Path
    cores: int
    cache_dir: str


def carry(fault: Fault, where: Where) -> Row:
    """Plant one fault and return what came of it. Starts launches."""
    began = time.monotonic()
    (where.folder / fault.name).mkdir(parents=True, exist_ok=True)
    with beside.placed(fault.beside, where.folder / fault.name, where.stack) as (variables, arguments):
        if fault.of_a_launch:
            caught, said, size = *_launched(fault, where, variables), None
        else:
            caught, said, size = _judged(fault, where, arguments)
    found = re.search(fault.words, said)
    shown = found[0] if found else said
    return Row(
        name=fault.name,
        carried=True,
        caught=caught,
        named=caught and found is not None,
        by=fault.caught_by,
        said=shorten(harmless(" ".join(shown.split())), MOST_SAID),
        seconds=round(time.monotonic() - began, 1),
        size=size,
    )


def member_of(fault: Fault) -> Member:
    """Return the variant whose launch shows a fault by itself: one rank, or two, on the fault's device."""
    if fault.gpu:
        return (
            GROUPS["dp@mnist_cnn-gpu"].member("ddp")
            if fault.ranks > 1
            else GROUPS["loader@mnist_cnn-gpu"].members[0]
        )
    return GROUPS["ranks@mnist_cnn-cpu" if fault.ranks > 1 else "loader@mnist_cnn-cpu"].members[0]


def spec_of(fault: Fault, where: Where) -> contract.LaunchSpec:
    """Return the spec of the launch that shows a fault by itself: smoke's sizes, and what the fault needs asked for."""
    context = Context(
        f"{where.folder.name}-{fault.name}", PROFILES["smoke"], where.cores, where.cache_dir, None
    )
    spec = build_spec(
        context, member_of(fault), launch="0001", round_number=0, out_dir=where.folder / fault.name / "launch"
    )
    return dataclasses.replace(spec, **dict(fault.asked))


def _launched(fault: Fault, where: Where, variables: Mapping[str, str]) -> tuple[bool, str]:
    """Return whether a launch with a fault in it was refused as it should be, and in which words."""
    environ = planted_environment(fault.name, {**os.environ, **variables})
    try:
        record = launch(spec_of(fault, where), where.stack, lock=None, environ=environ)
    except (LaunchFailed, NotAvailable) as error:
        return fault.caught_by == LAUNCH and isinstance(error, LaunchFailed), str(error)
    said = "\n".join(record.reasons)
    return not record.valid and fault.caught_by != LAUNCH, said or "the launch was valid"


def command(fault: Fault, where: Where, arguments: list[str]) -> list[str]:
    """Return the inner run whose perf test must catch a fault.

    By fork, which trains the same, unless the fault acts as a rank's process starts. On the CPU at smoke's sizes.
    """
    small = where.device == "cpu"
    options = [
        *("--profile", fault.profile),
        *("--device", where.device),
        *("--stack", where.stack.python),
        *(("--against", where.stack.python) if fault.compares else ()),
        *(("--launches", str(fault.launches)) if fault.launches is not None else ()),
        *(("--small",) if small else ()),
        *(("--plant", fault.name) if fault.injected or fault.environment else ()),
        *("--launcher", "fresh" if fault.fresh else "fork"),
        *("--cache-dir", where.cache_dir),
        *("--results", str(where.folder / fault.name)),
        "--share-node",
        *fault.options,
    ]
    cases = f"{fault.caught_by}{' and mnist_cnn and cpu' if small else ''}{fault.selection}"
    return [
        *(sys.executable, "-m", "pytest", "perf", "-q", "-p", "no:cacheprovider"),
        *options,
        *arguments,
        *("-k", cases),
    ]


def _judged(fault: Fault, where: Where, arguments: list[str]) -> tuple[bool, str, float | None]:
    """Return whether the perf test that must catch a fault did, what the run said, and how large the fault was."""
    try:
        done = subprocess.run(
            command(fault, where, arguments),
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"the inner run took more than {RUN_SECONDS:.0f} s", None
    run = where.folder / fault.name / "latest"
    (run / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    said = "\n".join([*_messages(run), done.stdout, done.stderr])
    return STATUSES[fault.verdict] == done.returncode, said, _size(run)


def _messages(run: Path) -> Iterator[str]:
    """Yield what the tests of a run said, in full; the terminal wraps it."""
    for found in _lines(run / "tests.jsonl"):
        if found.get("outcome") != "passed":
            yield str(found.get("text", ""))


def _size(run: Path) -> float | None:
    sizes = [times_detectable(found) for found in _lines(run / "verdicts.jsonl")]
    return max((size for size in sizes if size is not None), default=None)


def times_detectable(verdict: Mapping[str, Any]) -> float | None:
    """Return by how many times what it could have seen a failed judgement's estimate differs from what it is held to.

    A comparison of two stacks is told what change of the old side it could have seen, a limit what excess. A loader's
    share is judged by the ratio of two steps, 1 / (1 - share), and told by its logarithm: in points it could never lie
    far beyond a limit. A share of slow steps is compared in points, all else as ratios. None for a judgement that did
    not fail or could not say.
    """
    numbers = [verdict.get(key) for key in ("estimate", "limit", "detectable")]
    if verdict.get("verdict") != "fail" or any(not isinstance(number, (int, float)) for number in numbers):
        return None
    estimate, limit, detectable = (float(number) for number in numbers if number is not None)
    shares = verdict.get("unit") == "share"
    if not detectable > 0:
        return None
    if str(verdict.get("against")).endswith("@old"):
        size = estimate / detectable if shares else math.log(estimate) / math.log1p(detectable)
    elif shares:
        seen = limit + detectable
        if max(estimate, seen, limit) >= 1.0:
            return None
        size = math.log((1.0 - limit) / (1.0 - estimate)) / math.log((1.0 - limit) / (1.0 - seen))
    else:
        size = (estimate / limit - 1.0) / detectable
    return round(size, 2) if math.isfinite(size) else None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            # A line that was cut off is the run's own matter; what it would have said is missing then.
            with contextlib.suppress(ValueError):
                found = json.loads(line or "null")
                if isinstance(found, dict):
                    yield found
