"""NCCL's flight recorder, where torch has one: the last collectives of every rank, dumped when a launch hangs.

torch's names of these variables: 2.2 to 2.14 read TORCH_NCCL_*. Where a torch does not know them they do nothing. The
stacks of all threads come from ``faulthandler`` on any torch and any backend (`perf.training.state`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from perf.contract import LaunchSpec

TRACE_STEM = "nccl-trace-"
TRACE_FILES = f"{TRACE_STEM}*"

TRACE_ENTRIES = "2000"
"""Collectives that are kept: a step of the largest network here has a few dozen, so this holds tens of steps."""


def flight_recorder(spec: LaunchSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make a rank of NCCL keep its collectives, and dump them when its pipe is written to.

    What the caller set himself is left alone.
    """
    if spec.backend != "nccl" or spec.world_size < 2:
        return {}
    stem = os.path.join(spec.out_dir, TRACE_STEM)
    wanted = {
        "TORCH_NCCL_TRACE_BUFFER_SIZE": TRACE_ENTRIES,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": stem,
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": stem,
    }
    return {name: value for name, value in wanted.items() if name not in environ}


def ask_for_traces(spec: LaunchSpec) -> list[Path]:
    """Ask every rank of a launch that hangs to dump its collectives; return the pipes that were written to.

    A rank makes its pipe itself, as ``<stem><rank>.pipe``, and dumps from a thread of its own: a rank that is stuck in
    a collective does so too.
    """
    asked = []
    for path in sorted(Path(spec.out_dir).glob(f"{TRACE_STEM}*.pipe")):
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            # Nobody listens: the rank has ended.
            continue
        try:
            if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                os.write(pipe, b"1\n")
                asked.append(path)
        except OSError:
            pass
        finally:
            os.close(pipe)
    return asked
