"""Stacks that ``faulthandler`` dumped: what each thread was doing, and whether it waited for another rank. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perf.whole import whole

HEADER = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]+\b.*\(most recent call first\):\s*$")
FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')

SHOWN_FRAMES = 4
"""The innermost frames say where it hangs; below them is the entry of the program."""

# Where a rank stands that waits for the others or for its device (which, under NCCL, waits for the others).
WAITING_FILES = (
    "torch/distributed/",
    "torch/nn/parallel/distributed.py",
    "torch/nn/parallel/comm.py",
    "torch/cuda/streams.py",
    "torch/cuda/nccl.py",
)
WAITING_CALLS = (
    # Backward: DistributedDataParallel reduces gradients inside it, in C++.
    ("torch/autograd/graph.py", "_engine_run_backward"),
    ("torch/autograd/__init__.py", "backward"),
    ("torch/_tensor.py", "backward"),
    ("torch/cuda/__init__.py", "synchronize"),
)
# Calls into C++ that leave no frame of their own; the source line names them.
WAITING_SOURCE = re.compile(
    r"\.(item|cpu|cuda|to|tolist|synchronize|wait|backward)\("
    r"|\b(barrier|all_reduce|broadcast|all_gather\w*|reduce_scatter\w*)\("
)


@dataclass(frozen=True)
class Frame:
    """One line of a stack. `source` is that line of the file, '' where it can't be read."""

    file: str
    line: int
    function: str
    source: str = ""

    def __str__(self) -> str:
        shown = f"{self.file}:{self.line} in {self.function}"
        return f"{shown}: {self.source.strip()}" if self.source.strip() else shown


@dataclass(frozen=True)
class Dump:
    """One dump: `timeout` tells a time limit's from a crash's.

    `frames` are those of the thread that matters, innermost first: the main thread, or the one that crashed.
    """

    timeout: bool
    frames: tuple[Frame, ...]


def parse_dumps(text: str) -> list[Dump]:
    """Read every dump in a file, in order. Text that is no dump is skipped; a dump that was cut short is kept."""
    dumps: list[Dump] = []
    for part in re.split(r"^(?=Fatal Python error: )", text, flags=re.MULTILINE):
        threads = _threads(part)
        if not threads:
            continue
        timeout = not part.startswith("Fatal")
        # Threads are listed newest first, so the main thread is the last. At a time limit the current one is whichever
        # dumps (`perf.training.dumping`).
        current = [] if timeout else [frames for is_current, frames in threads if is_current]
        dumps.append(Dump(timeout, current[0] if current else threads[-1][1]))
    return dumps


def waits_for_others(frames: tuple[Frame, ...]) -> bool:
    """Say whether a rank stands inside a collective, a barrier, a backward pass or a wait for its device.

    Only the innermost frame counts: a hook that hangs is called from backward, and is to blame itself.
    """
    if not frames:
        return False
    file = frames[0].file.replace("\\", "/")
    if any(part in file for part in WAITING_FILES):
        return True
    if any(file.endswith(name) and frames[0].function == function for name, function in WAITING_CALLS):
        return True
    return bool(WAITING_SOURCE.search(frames[0].source))


def _threads(text: str) -> list[tuple[bool, tuple[Frame, ...]]]:
    threads: list[tuple[bool, list[Frame]]] = []
    inside = False
    for line in text.splitlines():
        header = HEADER.match(line)
        frame = FRAME.match(line)
        if header:
            threads.append((header[1] == "Current thread", []))
            inside = True
        elif inside and frame:
            threads[-1][1].append(Frame(frame[1], whole(frame[2]) or 0, frame[3]))
        elif line and not line.startswith("  "):
            # Another section, such as the C stack that Python 3.14 adds.
            inside = False
    return [(is_current, tuple(frames)) for is_current, frames in threads]
