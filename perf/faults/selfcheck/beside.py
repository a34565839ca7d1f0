"""What some faults put beside a launch: another process on the GPU, a reference file of another system."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from perf.launch.stack import Stack

__all__ = ["FOREIGN", "placed"]

FOREIGN = """\
schema = 1

[system]
gpu = "a card that no machine has"
gpus = 8
cpu = "a processor that no machine has"

[reference."mnist_cnn-single-1cpu-fp32-native".throughput]
unit = "samples/s"
direction = "higher"
expires = 2100-01-01
fingerprint = "ef926e0a33d6a8af"
configuration = { batch_size = 64 }

[[reference."mnist_cnn-single-1cpu-fp32-native".throughput.occasion]]
date = 2026-11-28
node = "elsewhere"
stack = "torch 0"
run = "elsewhere"
recorded_by = "the self-check"
launches = [1000.0, 1000.0, 1000.0, 1000.0, 1000.0]
"""
"""A reference of another system: what it says must not be held against this one."""

NEIGHBOUR = """
import sys, torch
held = torch.empty(2 * 2**30, dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""
"""Holds 2 GiB of the first GPU until its input ends: eight times what a launch takes for a neighbour."""

END_SECONDS = 30.0


@contextlib.contextmanager
def placed(what: str, folder: Path, stack: Stack) -> Iterator[tuple[Mapping[str, str], list[str]]]:
    """Put something beside the launches meanwhile; yields variables of the worker and options of an inner run.

    Raises
    ------
    RuntimeError
        If the neighbour on the GPU could not take its memory.
    """
    if what == "foreign-references":
        references = folder / "references"
        references.mkdir(exist_ok=True)
        (references / "elsewhere.toml").write_text(FOREIGN, encoding="utf-8")
        yield {}, ["--references", str(references), "--require-references"]
        return
    if what != "gpu-memory":
        yield {}, []
        return
    neighbour = subprocess.Popen(
        [*stack.before(), stack.python, "-c", NEIGHBOUR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert neighbour.stdout is not None
        if neighbour.stdout.readline().strip() != b"held":
            raise RuntimeError("the neighbour on the GPU could not take its 2 GiB; is the card in use?")
        yield {}, []
    finally:
        assert neighbour.stdin is not None
        neighbour.stdin.close()
        try:
            neighbour.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            neighbour.kill()
            neighbour.wait()
        if neighbour.stdout is not None:
            neighbour.stdout.close()
