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

What takes the time of steps is what a launch of this network would choose, and is told; where that is the host's clock
on a GPU, it is also told what its medians are of those of events, of the same steps. Its checks of the device, an event
in one step of 36, lie in no block.
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
from pathlib import Path
from typing import Any, Optional, cast

import torch
from torch.utils.data import Dataset

from models.interface import Workload, load_workload, workload_names
from perf.ending import finish
from perf.training.both import both_clocks
from perf.training.clocks import CudaClock, HostClock
from perf.training.identity import device_name
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.paired import (
    CONFIDENCE,
    FEWEST_PAIRS,
    Noted,
    Nothing,
    Pairs,
    launch_clock,
    median_interval,
)
from perf.training.ring import RingLoader
from perf.training.stackinfo import stack_info

WINDOW_STEPS, WINDOW_SECONDS = 100, 2.0
"""Of the suite's windows on a GPU: so many steps, and so long, at least (`perf.profiles`)."""

NOTED_STEPS = 400
"""Of the network, each of whose notes is timed by itself."""

BOTH_WINDOWS = 40
"""Whose steps are timed by the host's clock and by events both, where a GPU's are timed by the first."""

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
    clock
        The name of what takes the time of steps.
    apart
        Median steps by the host's clock over those by the device's events; empty where these are what takes the time.
    """

    pairs: list[tuple[float, float]]
    closing: list[float]
    idle: list[float]
    noted: Noted
    clock: str
    apart: list[float]


def measure(workload: Workload, device: torch.device, pairs: int, steps: int, seed: int) -> Found:
    """Measure what the module's docstring says, in so many pairs of blocks of so many steps."""
    dataset, _ = workload.train_set(None, tempfile.gettempdir())
    plan = LoaderPlan(workload.BATCH_SIZE, 0, 0, 1, distributed=False, pin_memory=False, seed=seed)
    ring = RingLoader(native_loader(cast("Dataset[Any]", dataset), plan), device).filled()
    torch.manual_seed(seed)
    model = workload.build_model().to(device)
    trains = (model, workload.loss_function, workload.make_optimizer(model))
    clock = launch_clock(ring, device, trains)
    by_host = isinstance(clock, HostClock)
    tried = Pairs(ring, device, steps, WINDOW_STEPS, trains, clock).take(FEWEST_PAIRS)
    step = statistics.median(bare for bare, _ in tried) / steps
    window = max(WINDOW_STEPS, math.ceil(WINDOW_SECONDS / step))
    blocks = Pairs(ring, device, steps, window, trains, clock)
    found = blocks.take(pairs)
    nothing = Nothing(torch.zeros((), device=device))
    idle = Pairs(ring, device, IDLE_STEPS, window, (nothing, nothing, nothing), clock).take(IDLE_PAIRS)
    closing = list(blocks.closing)
    noted = blocks.noted(-(-NOTED_STEPS // (steps + 1)))
    taken = [(watched - alone) / IDLE_STEPS for alone, watched in idle]
    apart = []
    if device.type == "cuda" and by_host:
        apart = both_clocks(ring, CudaClock([device]), device, trains, BOTH_WINDOWS, WINDOW_STEPS)
    return Found(
        found,
        closing,
        taken,
        noted,
        "host" if by_host else "events",
        [host / events for host, events in apart],
    )


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
    parser.add_argument(
        "--ratios",
        type=Path,
        metavar="FILE",
        help="where to write each pair's ratio, one a line, to pool runs by",
    )
    options = parser.parse_args(arguments)
    if options.pairs < FEWEST_PAIRS or options.steps < 1 or options.threads < 1:
        parser.error(f"at least {FEWEST_PAIRS} pairs, 1 step and 1 thread are needed")
    torch.set_num_threads(options.threads)
    device = torch.device(options.device, 0) if options.device == "cuda" else torch.device("cpu")
    found = measure(load_workload(options.workload), device, options.pairs, options.steps, options.seed)
    ratios = [instrumented / bare_block for bare_block, instrumented in found.pairs]
    if options.ratios is not None:
        options.ratios.write_text("".join(f"{ratio!r}\n" for ratio in ratios), encoding="ascii")
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
                "clock": found.clock,
                "clock_ratio": statistics.median(found.apart) if found.apart else None,
                "clock_interval": median_interval(found.apart) if found.apart else None,
            }
        )
    )
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
