"""``python -m perf.training.fit``: the largest batch of a workload that fits on a GPU, by trying.

Batches are doubled until one does not fit, then halved in between. Each try builds the network anew, trains two steps
on random input and reads the peak of allocated memory. A batch that the card has no memory for is reported as such; it
ends no run. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from models.interface import load_workload, workload_names
from perf.ending import finish
from perf.training.identity import device_name
from perf.training.stackinfo import stack_info

MOST_DOUBLINGS = 20
"""A million times the first batch: no card has that much memory, so the search ends."""


class OutOfMemory(RuntimeError):
    """A batch does not fit; the message is torch's."""


def largest(
    fits: Callable[[int], Optional[int]], first: int, within: float = 0.05
) -> tuple[int, list[dict[str, Any]]]:
    """Return the largest batch that fits, to within a part of itself, and what was tried.

    Parameters
    ----------
    fits
        Takes a batch; returns its peak of memory in bytes, or None if it does not fit.
    first
        The batch to begin with.
    within
        The search ends when the smallest batch that does not fit is no more than this part larger.

    Returns
    -------
    tuple
        0 if not even one sample fits.
    """
    tried: list[dict[str, Any]] = []

    def attempt(batch: int) -> bool:
        peak = fits(batch)
        tried.append({"batch": batch, "peak_bytes": peak, "fits": peak is not None})
        return peak is not None

    good, bad, batch = 0, 0, max(1, first)
    for _ in range(MOST_DOUBLINGS):
        if not attempt(batch):
            bad = batch
            break
        good, batch = batch, 2 * batch
    while bad and bad - good > max(1, int(within * good)):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if attempt(middle) else (good, middle)
    return good, tried


def peak_of(name: str, batch: int, device: torch.device) -> int:
    """Return the peak of allocated memory of two steps in bytes.

    Raises
    ------
    OutOfMemory
        If the card has too little memory for it.
    """
    workload = load_workload(name)
    shape, target_shape = workload.SAMPLE_SHAPE, workload.TARGET_SHAPE
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    try:
        model = workload.build_model().to(device)
        optimizer = workload.make_optimizer(model)
        data = torch.randn(batch, *shape, device=device)
        target = (
            torch.randn(batch, *target_shape, device=device)
            if target_shape
            else torch.zeros(batch, dtype=torch.int64, device=device)
        )
        # Two: the optimizer's state is made in the first.
        for _ in range(2):
            optimizer.zero_grad()
            workload.loss_function(model(data), target).backward()
            optimizer.step()
        return int(torch.cuda.max_memory_allocated(device))
    except torch.cuda.OutOfMemoryError as error:
        raise OutOfMemory(str(error)) from error


def main(arguments: Sequence[str]) -> int:
    """Search and print one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.training.fit", description="The largest batch that fits on a GPU."
    )
    parser.add_argument("--workload", choices=sorted(workload_names()), default="unet3d")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("stackproof fit: no GPU here, and torch does not say what it takes on a CPU", file=sys.stderr)
        return 1
    device = torch.device("cuda", 0)

    def fits(batch: int) -> Optional[int]:
        try:
            return peak_of(options.workload, batch, device)
        except OutOfMemory:
            return None
        finally:
            gc.collect()

    batch, tried = largest(fits, load_workload(options.workload).BATCH_SIZE)
    print(
        json.dumps(
            {
                "workload": options.workload,
                "device": device_name(device),
                "torch": stack_info()["torch"],
                "memory_bytes": torch.cuda.get_device_properties(device).total_memory,
                "largest_batch": batch,
                "tried": tried,
            }
        )
    )
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
