"""``python -m perf.training.parity``: whether a step in a CUDA graph trains what an eager one trains.

Two copies of a workload start from one seed and train two short epochs on the same batches that lie on the device, one
eagerly and one in a CUDA graph, with the schedule's change of rate and a partial batch between them. The largest
relative difference of their parameters is printed as one line of JSON. Exit status 1 where it is above `TOLERANCE`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import torch

from models.interface import Workload, load_workload, workload_names
from perf.ending import finish
from perf.training.identity import device_name
from perf.training.optimizations import make_optimizer
from perf.training.stackinfo import stack_info
from perf.training.steps import EagerStep, GraphedStep

TOLERANCE = 1e-3
"""Largest relative difference of a parameter tensor. Sums in another order differ by 1e-7 a step and are amplified by
training: two eager runs of mnist_cnn with nondeterministic kernels differ by as much as eager and graphed ones. A rate
that was not followed or a batch that was left out differs by 1e-1."""


def train_epochs(
    workload: Workload, device: torch.device, batches: Sequence[Any], *, graphed: bool, epochs: int, seed: int
) -> tuple[list[torch.Tensor], dict[str, Any]]:
    """Train from a seed and return the parameters and what the graph says of itself."""
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    model = workload.build_model().to(device)
    optimizer = make_optimizer(workload, model, "", ["cuda_graph"])
    scheduler = workload.make_scheduler(optimizer, epochs=epochs)
    eager = EagerStep(model, device, workload.loss_function, optimizer, precision="fp32")
    step = GraphedStep(eager, device) if graphed else eager
    model.train()
    for _ in range(epochs):
        for data, target in batches:
            step(data, target)
        scheduler.step()
    torch.cuda.synchronize(device)
    facts = step.describe() if isinstance(step, GraphedStep) else {}
    return [p.detach().double().cpu() for p in model.parameters()], facts


def largest_difference(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """Return the largest norm of a difference over the norm of the first, over all tensors."""
    return max(float((a - b).norm() / a.norm().clamp_min(1e-12)) for a, b in zip(one, other))


def main(arguments: Sequence[str]) -> int:
    """Train both ways and print one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.training.parity",
        description="Says whether a step in a CUDA graph trains what an eager one trains. Needs a GPU.",
    )
    parser.add_argument(
        "--workload",
        choices=sorted(workload_names()),
        default="mnist_cnn",
        help="which network (default: mnist_cnn)",
    )
    parser.add_argument("--steps", type=int, default=40, help="whole batches an epoch (default: 40)")
    parser.add_argument("--epochs", type=int, default=2, help="epochs (default: 2)")
    parser.add_argument("--batch", type=int, help="samples a batch (default: the workload's)")
    parser.add_argument(
        "--cache-dir", metavar="DIR", default=".", help="where generated data lie (default: this folder)"
    )
    parser.add_argument("--data-root", metavar="DIR", help="folder of staged data")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default: 1)")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.epochs < 1:
        parser.error("at least 1 step and 1 epoch are needed")
    if not torch.cuda.is_available():
        print("stackproof parity: only GPUs have graphs, and torch sees none here", file=sys.stderr)
        return 2
    device = torch.device("cuda", 0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    workload = load_workload(options.workload)
    size = options.batch or workload.BATCH_SIZE
    samples, _ = workload.train_set(options.data_root, options.cache_dir)
    raw = tuple(tensor.to(device) for tensor in samples.tensors())
    # The last batch is a partial one.
    edges = [*range(0, options.steps * size + 1, size), options.steps * size + max(1, size // 2)]
    batches = [samples.batch(raw, torch.arange(a, b)) for a, b in zip(edges, edges[1:])]
    how = {"epochs": options.epochs, "seed": options.seed}
    eager, _ = train_epochs(workload, device, batches, graphed=False, **how)
    again, _ = train_epochs(workload, device, batches, graphed=False, **how)
    graphed, facts = train_epochs(workload, device, batches, graphed=True, **how)
    difference = largest_difference(eager, graphed)
    print(
        json.dumps(
            {
                "workload": options.workload,
                "device": device_name(device),
                "torch": stack_info()["torch"],
                "steps": len(batches) * options.epochs,
                "difference": difference,
                "difference_of_two_eager_runs": largest_difference(eager, again),
                "tolerance": TOLERANCE,
                **facts,
            }
        )
    )
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
