"""``python -m perf.training.overhead``: what measuring costs, instrumented loop over bare loop.

One network trains in one process on a ring of batches that lie on the device, in short blocks in the order bare,
instrumented, instrumented, bare … Each pair of neighbouring blocks gives one ratio; the median ratio and an exact
interval from its order statistics are printed as one line of JSON. One network, since two copies would lie at different
places in memory, and the ratio would hold which of them is the faster for it.
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
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable, cast

import torch
from torch.utils.data import Dataset

from models.interface import Workload, load_workload, workload_names
from perf.ending import finish
from perf.training.clocks import Clock, CudaClock, HostClock
from perf.training.identity import device_name
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.loop import train
from perf.training.meter import Meter, Watched
from perf.training.ring import RingLoader
from perf.training.stackinfo import stack_info

CONFIDENCE = 0.95

FEWEST_PAIRS = 6
"""The smallest and the largest of 6 values miss the median with probability 2 / 2^6 = 3 %, of 5 with 6 %."""


def bare(
    model: torch.nn.Module,
    device: torch.device,
    train_loader: Iterable[Any],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Train as `perf.training.loop.train` does, without a meter: what the instrumented loop is held against."""
    model.train()
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = loss_function(output, target)
        loss.backward()
        optimizer.step()


class Block:
    """A number of batches of a ring, as an iterable."""

    def __init__(self, ring: RingLoader, steps: int) -> None:
        self._ring = ring
        self._steps = steps

    def __iter__(self) -> Any:
        """Yield the block's batches."""
        batches = self._ring.batches
        return (batches[step % len(batches)] for step in range(self._steps))


def measure(
    workload: Workload, device: torch.device, pairs: int, steps: int, seed: int
) -> list[tuple[float, float]]:
    """Return the seconds of each pair of blocks: bare, instrumented. Opening the window lies outside them."""
    dataset, _ = workload.train_set(None, tempfile.gettempdir())
    plan = LoaderPlan(workload.BATCH_SIZE, 0, 0, 1, distributed=False, pin_memory=False, seed=seed)
    ring = RingLoader(native_loader(cast("Dataset[Any]", dataset), plan), device).filled()
    clock: Clock = CudaClock([device]) if device.type == "cuda" else HostClock()
    torch.manual_seed(seed)
    model = workload.build_model().to(device)
    optimizer = workload.make_optimizer(model)

    def block(side: str) -> float:
        batches: Any = Block(ring, steps)
        meter = Meter(
            clock,
            warmup_steps=0,
            rewarm_steps=0,
            timed_steps=steps,
            min_seconds=0.0,
            stop_when_timed=False,
        )
        meter.open_window()
        clock.synchronize()
        before = time.perf_counter()
        if side == "bare":
            bare(model, device, batches, workload.loss_function, optimizer)
        else:
            train(model, device, Watched(batches, meter), workload.loss_function, optimizer, meter)
        clock.synchronize()
        return time.perf_counter() - before

    for side in ("bare", "instrumented", "bare", "instrumented"):
        block(side)
    found = []
    for pair in range(pairs):
        order = ("bare", "instrumented") if pair % 2 == 0 else ("instrumented", "bare")
        seconds = {side: block(side) for side in order}
        found.append((seconds["bare"], seconds["instrumented"]))
    return found


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return an exact interval for the median: the narrowest pair of order statistics that covers `confidence`.

    Distribution-free: the number of values below the median is binomial(n, 1/2).

    Raises
    ------
    ValueError
        If there are too few values for any pair to cover that much: fewer than 6 for 0.95.
    """
    ordered, n = sorted(values), len(values)
    if 2 / 2**n > 1 - confidence:
        raise ValueError(f"{n} values can't give an interval that covers {confidence}; take more")
    k = 0
    while k + 1 < n / 2 and 2 * sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= 1 - confidence:
        k += 1
    return ordered[k], ordered[n - 1 - k]


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
    seconds = measure(load_workload(options.workload), device, options.pairs, options.steps, options.seed)
    ratios = [instrumented / bare_block for bare_block, instrumented in seconds]
    low, high = median_interval(ratios)
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
                "bare_step_ms": 1000
                * statistics.median(bare_block for bare_block, _ in seconds)
                / options.steps,
                "ratio": statistics.median(ratios),
                "low": low,
                "high": high,
                "confidence": CONFIDENCE,
            }
        )
    )
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
