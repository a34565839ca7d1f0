"""``python -m perf.training.work [WORKLOAD…]``: what one training step of each workload has to do, counted.

The figures stand in ``perf/workloads.py``; a test counts them again. Nothing is computed: the networks are on the meta
device, where tensors have shapes and no contents.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from models.interface import load_workload, workload_names
from perf.ending import finish


@dataclass(frozen=True)
class Work:
    """What a step does, forward, loss and backward; the optimizer is not counted.

    Parameters
    ----------
    flops
        Floating-point operations a sample in products and convolutions, as ``torch.utils.flop_counter`` counts them.
    operators
        Operators of torch a step, views left out: as many kernels at least, whatever the batch.
    """

    flops: int
    operators: int


class OperatorCounter(TorchDispatchMode):
    """Counts the operators that reach the dispatcher below autograd, but for those that only look at a tensor anew."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one operator and run it."""
        self.count += not is_view(func)
        return func(*args, **(kwargs or {}))


def is_view(operator: Any) -> bool:
    """Whether an operator returns its argument's memory under another shape, which takes no kernel."""
    aliases = [argument.alias_info for argument in operator._schema.arguments]  # noqa: SLF001 - torch has no public name
    return any(alias is not None and not alias.is_write for alias in aliases)


def count(name: str, batch: int = 2) -> Work:
    """Count the work of one workload.

    Parameters
    ----------
    name
        Of the workload.
    batch
        Samples of the step that is counted: two at least, since batch normalization refuses one.
    """
    workload = load_workload(name)
    shape, target_shape = workload.SAMPLE_SHAPE, workload.TARGET_SHAPE
    with torch.device("meta"):
        model = workload.build_model()
        data = torch.empty(batch, *shape)
        target = torch.empty(batch, *target_shape, dtype=torch.float32 if target_shape else torch.int64)
    model.train()

    def step() -> None:
        model.zero_grad()
        workload.loss_function(model(data), target).backward()

    flops = FlopCounterMode(display=False)
    with flops:
        step()
    operators = OperatorCounter()
    with operators:
        step()
    return Work(flops.get_total_flops() // batch, operators.count)


def main(arguments: Sequence[str]) -> int:
    """Print one line of JSON a workload."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.training.work",
        description="Counts what a training step has to do: floating-point operations a sample, operators a step. One "
        "line of JSON a workload. Computes nothing, needs no GPU.",
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="which networks (default: all)")
    asked = parser.parse_args(list(arguments)).workloads
    known = workload_names()
    # Not as argparse's choices: before Python 3.12 these refuse that none is named.
    unknown = [name for name in asked if name not in known]
    if unknown:
        parser.error(
            f"argument WORKLOAD: invalid choice: {unknown[0]!r} (choose from {', '.join(sorted(known))})"
        )
    for name in asked or known:
        print(json.dumps({"workload": name, **asdict(count(name))}))
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
