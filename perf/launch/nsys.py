"""Captures by Nsight Systems: whether it is here, and whether a capture holds anything."""

from __future__ import annotations

import os
import shutil
import subprocess

from perf.launch.failure import LaunchFailed, NotAvailable

READ_SECONDS = 300
"""A capture of ten steps is read in seconds; a hung nsys must not hang the run."""

WANTED = "step"
"""The range that every captured step has."""


def refuse_without_nsys() -> None:
    """Raise NotAvailable where there is no Nsight Systems."""
    if shutil.which("nsys") is None:
        raise NotAvailable("nsys: Nsight Systems is not on PATH; it comes with CUDA's toolkit, or by itself")


def check_capture(path: str) -> None:
    """Raise LaunchFailed where a capture is missing, empty, or without the ranges of a step.

    nsys itself ends with 0 where nothing was captured (the worker's marks and its capture range did not meet).
    """
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        raise LaunchFailed(f"nsys left no capture at {path}: it is missing or empty")
    try:
        done = subprocess.run(
            ["nsys", "stats", "--report", "nvtx_sum", "--format", "csv", "--force-export=true", path],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=READ_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchFailed(f"the capture {path} can't be read by nsys stats: {error}") from error
    if done.returncode != 0 or not has_range(done.stdout):
        said = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing"]
        raise LaunchFailed(
            f"the capture {path} holds no NVTX range {WANTED!r}: it is empty. nsys stats said: {said[0]:.300}"
        )


def has_range(table: str) -> bool:
    """Say whether nsys' table of NVTX ranges has one named ``step``, with or without nsys' colon before the name."""
    fields = (
        field.strip().strip('"').lstrip(":") for line in table.splitlines() for field in line.split(",")
    )
    return any(field == WANTED for field in fields)
