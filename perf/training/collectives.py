"""What DistributedDataParallel says to the other ranks in a step, counted while it says it.

DDP gathers gradients in buckets and all-reduces each as soon as it is full. How many buckets there are is a plan until
the first backward pass, after which DDP builds them anew in the order in which gradients came. So steps are counted
after training: DDP has long settled, and nothing that is timed is looked at.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

COUNTED_STEPS = 2
"""Steps that are counted; that two agree shows that a step's number is one."""

OPERATORS = {"all_reduces": "c10d::allreduce_", "broadcasts": "c10d::broadcast_"}
"""Operators of torch's dispatcher that every backend's collectives go through, by the name of the fact."""


def without_sync(model: torch.nn.Module, switches: Sequence[str]) -> Any:
    """Return the context in which steps run: DDP's no_sync where ``nosync`` was asked for."""
    wrapper = getattr(model, "_orig_mod", model)
    if "nosync" in switches and isinstance(wrapper, DistributedDataParallel):
        return wrapper.no_sync()
    return contextlib.nullcontext()


def count_collectives(
    model: torch.nn.Module,
    loss_of: Callable[[torch.nn.Module, torch.Tensor, torch.Tensor], torch.Tensor],
    batch: Sequence[torch.Tensor],
    device: torch.device,
    switches: Sequence[str] = (),
) -> dict[str, float]:
    """Return how many collectives a forward and backward pass takes, by torch's own profiler.

    Every rank has to call it, since the passes are real ones. Parameters stay as they are; gradients are thrown away.

    Parameters
    ----------
    model
        The wrapped model, trained for some steps.
    loss_of
        Returns the loss of a batch, in the precision of the training.
    batch
        Data and target.
    switches
        DDP's switches of the launch.
    """
    data, target = batch[0].to(device), batch[1].to(device)

    def passes(steps: int) -> None:
        with without_sync(model, switches):
            for _ in range(steps):
                model.zero_grad(set_to_none=True)
                loss_of(model, data, target).backward()
        model.zero_grad(set_to_none=True)

    # The host's operators alone: CUPTI, which sees the device's, may be taken by another profiler.
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        passes(COUNTED_STEPS)
    written = _written(seen)
    return {
        fact: len(re.findall(rf'"name":\s*"{re.escape(operator)}"', written)) / COUNTED_STEPS
        for fact, operator in OPERATORS.items()
    }


def _written(seen: profile) -> str:
    """Return a profile as torch writes it, with the name of each event.

    Its own sums are made of an object for each event: of two passes of `resnet152` they took 3.6 s, and counting by way
    of the file 0.1 s (a CPU core, torch 2.14).
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        seen.export_chrome_trace(path)
        with open(path, encoding="utf-8", errors="replace") as trace:
            return trace.read()
