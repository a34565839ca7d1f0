"""``python -m perf.training.overhead``: what measuring costs, instrumented loop over bare loop.

One network trains in one process on a ring of batches that lie on the device, in short blocks in the order bare,
instrumented, instrumented, bare … Each pair of neighbouring blocks gives one ratio; the median ratio and an exact
interval from its order statistics are printed as one line of JSON. One network, since two copies would lie at different
places in memory, and the ratio would hold which of them is the faster for it.

Where the host holds a network up, steps differ by more than measuring costs. So the same two loops also run over a
network that does nothing: what the instrumented one takes longer there, microseconds a step, is all that a host has to
do for it, and hides behind a device that is the slower one. That is what it takes with a core's caches to itself; what
it takes between the steps of the network is timed too, each note by itself, and a window's end, once in a hundred steps
or more. Blocks are of a window's middle: in its first and last tenth each note is one with a look.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, cast

import torch
from torch.utils.data import Dataset

from models.interface import Workload, load_workload, workload_names
from perf.ending import finish
from perf.training.identity import device_name
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.paired import CONFIDENCE, FEWEST_PAIRS, Noted, Nothing, Pairs, median_interval
from perf.training.ring import RingLoader
from perf.training.stackinfo import stack_info

WINDOW_STEPS, WINDOW_SECONDS = 100, 2.0
"""Of the suite's windows on a GPU: so many steps, and so long, at least (`perf.profiles`)."""

NOTED_STEPS = 400
"""Of the network, each of whose notes is timed by itself."""

IDLE_STEPS, IDLE_PAIRS = 200, 101
"""Blocks over a network that does nothing: 200 steps take a millisecond or two, in which a host is seldom disturbed."""


@dataclass(frozen=True)
class Found:
    """What was measured, all in seconds.

    Attributes
    ----------
    pairs
        Blocks, bare and instrumented.
    closing
        Ends of windows.
    idle
        What a host takes more a step, over a network that does nothing.
    noted
        What notes take between steps of the network.
    """

    pairs: list[tuple[float, float]]
    closing: list[float]
    idle: list[float]
    noted: Noted


def measure(workload: Workload, device: torch.device, pairs: int, steps: int, seed: int) -> Found:
    """Measure what the module's docstring says, in so many pairs of blocks of so many steps."""
    dataset, _ = workload.train_set(None, tempfile.gettempdir())
    plan = LoaderPlan(workload.BATCH_SIZE, 0, 0, 1, distributed=False, pin_memory=False, seed=seed)
    ring = RingLoader(native_loader(cast("Dataset[Any]", dataset), plan), device).filled()
    torch.manual_seed(seed)
    model = workload.build_model().to(device)
    trains = (model, workload.loss_function, workload.make_optimizer(model))
    tried = Pairs(ring, device, steps, WINDOW_STEPS, trains).take(FEWEST_PAIRS)
    step = statistics.median(bare for bare, _ in tried) / steps
    window = max(WINDOW_STEPS, math.ceil(WINDOW_SECONDS / step))
    blocks = Pairs(ring, device, steps, window, trains)
    found = blocks.take(pairs)
    nothing = Nothing(torch.zeros((), device=device))
    idle = Pairs(ring, device, IDLE_STEPS, window, (nothing, nothing, nothing)).take(IDLE_PAIRS)
    closing = list(blocks.closing)
    noted = blocks.noted(-(-NOTED_STEPS // (steps + 1)))
    return Found(found, closing, [(watched - alone) / IDLE_STEPS for alone, watched in idle], noted)


def _microseconds(seconds: Sequence[float]) -> Optional[float]:
    return 1e6 * statistics.median(seconds) if seconds else None


def main(arguments: Sequence[str]) -> int:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.training.overhead",
        description="Says what measuring costs: pairs of blocks of steps, with and without it.",
    )
    parser.add_argument(
        "--workload",
        choices=sorted(workload_names()),
        default="mnist_cnn",
        help="which network (default: mnist_cnn)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cuda" if torch.cuda.is_available() else "cpu",
        help="where (default: a GPU where there is one)",
    )
    parser.add_argument("--pairs", type=int, default=40, help="pairs of blocks (default: 40)")
    parser.add_argument("--steps", type=int, default=20, help="steps a block (default: 20)")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default: 1)")
    options = parser.parse_args(arguments)
    if options.pairs < FEWEST_PAIRS or options.steps < 1 or options.threads < 1:
        parser.error(f"at least {FEWEST_PAIRS} pairs, 1 step and 1 thread are needed")
    torch.set_num_threads(options.threads)
    device = torch.device(options.device, 0) if options.device == "cuda" else torch.device("cpu")
    found = measure(load_workload(options.workload), device, options.pairs, options.steps, options.seed)
    ratios = [instrumented / bare_block for bare_block, instrumented in found.pairs]
    low, high = median_interval(ratios)
    bare_step = statistics.median(bare_block for bare_block, _ in found.pairs) / options.steps
    host_low, host_high = median_interval(found.idle)
    print(
        json.dumps(
            {
                "workload": options.workload,
                "device": device_name(device)
                if device.type == "cuda"
                else platform.processor() or platform.machine(),
                "cores": len(os.sched_getaffinity(0)),
                "threads": options.threads,
                "torch": stack_info()["torch"],
                "pairs": options.pairs,
                "steps": options.steps,
                "bare_step_ms": 1e3 * bare_step,
                "ratio": statistics.median(ratios),
                "low": low,
                "high": high,
                "confidence": CONFIDENCE,
                "host_us": 1e6 * statistics.median(found.idle),
                "host_us_low": 1e6 * host_low,
                "host_us_high": 1e6 * host_high,
                "host_share": statistics.median(found.idle) / bare_step,
                "note_us": _microseconds(found.noted.steps),
                "note_with_look_us": _microseconds(found.noted.looks),
                "wait_note_us": _microseconds(found.noted.waits),
                "closing_us": _microseconds(found.closing),
            }
        )
    )
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
