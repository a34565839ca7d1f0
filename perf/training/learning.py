"""``python -m perf.training.learning``: for how many seeds the loss falls in a launch as short as a profile's.

Trains a workload anew from each seed for as many steps as a launch has, warm-up included, and holds the mean loss of
the last tenth against that of the first: what ``test_loss_falls`` asserts. Prints one line of JSON. Exit status 1 where
the loss did not fall for some seed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence

import torch

from models.interface import load_workload, workload_names
from perf.ending import finish
from perf.training.loaders import LoaderPlan, make_loader, set_epoch
from perf.training.stackinfo import stack_info


def losses_of(name: str, batch: int, steps: int, seed: int, cache_dir: str) -> tuple[list[float], float]:
    """Train from a seed on the CPU; return the loss of each step and the median seconds of a step."""
    workload = load_workload(name)
    samples, _ = workload.train_set(None, cache_dir)
    plan = LoaderPlan(batch, 0, 0, 1, distributed=False, pin_memory=False, seed=seed)
    loader = make_loader("batched", samples, plan, torch.device("cpu"))
    set_epoch(loader, 0, seed)
    torch.manual_seed(seed)
    model = workload.build_model()
    optimizer = workload.make_optimizer(model)
    losses, seconds = [], []
    for data, target in loader:
        before = time.perf_counter()
        optimizer.zero_grad()
        loss = workload.loss_function(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - before)
        if len(losses) == steps:
            return losses, statistics.median(seconds)
    raise ValueError(f"an epoch of {name} at batch {batch} has {len(losses)} steps, {steps} were asked for")


def last_over_first(losses: Sequence[float]) -> float:
    """Return the mean of the last tenth of all losses over that of the first tenth."""
    tenth = max(1, len(losses) // 10)
    return statistics.fmean(losses[-tenth:]) / statistics.fmean(losses[:tenth])


def main(arguments: Sequence[str]) -> int:
    """Train from each seed and print one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.training.learning",
        description="Counts for how many seeds the loss falls in a short launch.",
    )
    parser.add_argument(
        "--workload",
        choices=sorted(workload_names()),
        default="mnist_cnn",
        help="which network (default: mnist_cnn)",
    )
    parser.add_argument("--batch", type=int, default=8, help="samples a step (default: 8)")
    parser.add_argument("--steps", type=int, default=44, help="steps of a launch (default: 44)")
    parser.add_argument(
        "--seeds", type=int, default=50, help="launches, each with its own seed (default: 50)"
    )
    parser.add_argument("--first-seed", type=int, default=1000, help="seed of the first (default: 1000)")
    parser.add_argument(
        "--cache-dir", metavar="DIR", default=".", help="where generated data lie (default: this folder)"
    )
    options = parser.parse_args(arguments)
    if min(options.batch, options.steps, options.seeds) < 1:
        parser.error("at least 1 sample, 1 step and 1 seed are needed")
    torch.set_num_threads(1)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    runs = [
        losses_of(options.workload, options.batch, options.steps, seed, options.cache_dir) for seed in seeds
    ]
    ratios = [last_over_first(losses) for losses, _ in runs]
    fell = sum(ratio < 1.0 for ratio in ratios)
    print(
        json.dumps(
            {
                "workload": options.workload,
                "torch": stack_info()["torch"],
                "batch": options.batch,
                "steps": options.steps,
                "seeds": options.seeds,
                "fell": fell,
                "largest": max(ratios),
                "step_ms": 1000 * statistics.median(seconds for _, seconds in runs),
            }
        )
    )
    return 0 if fell == options.seeds else 1


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
