"""``python -m perf.training.overhead``: what measuring costs, instrumented loop over bare loop.

One network trains in one process on a ring of batches that lie on the device, in short blocks in the order bare,
instrumented, instrumented, bare … Each pair of neighbouring blocks gives one ratio; the median ratio and an exact
interval from its order statistics are printed as one line of JSON. One network, since two copies would lie at different
places in memory, and the ratio would hold which of them is the faster for it.

Where the host holds a network up, steps differ by more than measuring costs. So the same two loops also run over a
network that does nothing: what the instrumented one takes longer there, microseconds a step, is all that a host has to
do for it, and hides behind a device that is the slower one. The end of a window, once in a hundred steps or more, is
timed by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.utils.data import Dataset

from models.interface import Workload, load_workload, workload_names
from perf.ending import finish
from perf.training.identity import device_name
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.paired import CONFIDENCE, FEWEST_PAIRS, Nothing, Pairs, median_interval
from perf.training.ring import RingLoader
from perf.training.stackinfo import stack_info

IDLE_STEPS, IDLE_PAIRS = 200, 101
"""Blocks over a network that does nothing: 200 steps take a millisecond or two, in which a host is seldom disturbed."""


def measure(
    workload: Workload, device: torch.device, pairs: int, steps: int, seed: int
) -> tuple[list[tuple[float, float]], list[float], list[float]]:
    """Return seconds: of pairs of blocks (bare, instrumented), of windows' ends, and what a host takes more a step."""
    dataset, _ = workload.train_set(None, tempfile.gettempdir())
    plan = LoaderPlan(workload.BATCH_SIZE, 0, 0, 1, distributed=False, pin_memory=False, seed=seed)
    ring = RingLoader(native_loader(cast("Dataset[Any]", dataset), plan), device).filled()
    torch.manual_seed(seed)
    model = workload.build_model().to(device)
    blocks = Pairs(ring, device, steps, model, workload.loss_function, workload.make_optimizer(model))
    found = blocks.take(pairs)
    nothing = Nothing(torch.zeros((), device=device))
    idle = Pairs(ring, device, IDLE_STEPS, nothing, nothing, nothing).take(IDLE_PAIRS)
    return found, blocks.closing, [(watched - alone) / IDLE_STEPS for alone, watched in idle]


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
    seconds, closing, more = measure(
        load_workload(options.workload), device, options.pairs, options.steps, options.seed
    )
    ratios = [instrumented / bare_block for bare_block, instrumented in seconds]
    low, high = median_interval(ratios)
    bare_step = statistics.median(bare_block for bare_block, _ in seconds) / options.steps
    host_low, host_high = median_interval(more)
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
                "host_us": 1e6 * statistics.median(more),
                "host_us_low": 1e6 * host_low,
                "host_us_high": 1e6 * host_high,
                "host_share": statistics.median(more) / bare_step,
                "closing_us": 1e6 * statistics.median(closing),
            }
        )
    )
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
