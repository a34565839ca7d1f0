"""Traces of a few steps, in launches of their own: torch's profiler for every rank, or ranges for Nsight Systems.

Ranges carry the words of the SC22 tutorial: ``step``, and inside it ``data``, ``data copy``, ``forward``, ``backward``
and ``optimizer``. They are NVTX ranges on a GPU and ranges of torch's profiler everywhere.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional, Protocol

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from perf import contract
from perf.training import tracefile
from perf.training.collectives import OPERATORS
from perf.training.meter import Meter
from perf.training.settings import NotInForce

RANGES = ("step", "data", "data copy", "forward", "backward", "optimizer")

TRACED_STEPS = 10
"""Steps of a trace: enough to see one that differs, few enough for a file that opens."""

TOP_KERNELS = 15
"""Rows of the table of what takes the most time."""


class Tracer(Protocol):
    """Captures some steps."""

    def step_ended(self) -> None:
        """Note the end of a step: begin or end the capture where it is time."""

    def facts(self) -> dict[str, Any]:
        """Return what was captured; raises NotInForce where that is nothing."""


class TorchTracer:
    """Captures steps with torch's profiler and writes ``trace-rank-N.json.gz``, which Perfetto opens.

    Parameters
    ----------
    path
        Where the trace goes; ends in ``.json.gz``.
    first_step
        Steps that pass before it begins.
    device
        Whose kernels are seen: a CPU's operators where it is none.
    """

    def __init__(self, path: str, first_step: int, device: torch.device) -> None:
        self._path = path
        self._first = first_step
        self._device = device
        self._steps = 0
        self._profile: Optional[profile] = None
        self._started = 0.0
        self._seconds = 0.0
        self._facts: Optional[dict[str, Any]] = None

    def step_ended(self) -> None:
        """Begin behind the warm-up; end, and write, some steps later."""
        self._steps += 1
        if self._steps == self._first:
            activities = [ProfilerActivity.CPU]
            if self._device.type == "cuda":
                activities.append(ProfilerActivity.CUDA)
            self._profile = profile(activities=activities, record_shapes=True)
            self._profile.start()
            self._synchronize()
            self._started = time.perf_counter()
        elif self._steps == self._first + TRACED_STEPS and self._profile is not None:
            self._synchronize()
            self._seconds = time.perf_counter() - self._started
            self._profile.stop()
            self._profile.export_chrome_trace(self._path)
            self._facts = _facts_of(self._profile, self._path, self._seconds, self._device.type == "cuda")

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def facts(self) -> dict[str, Any]:
        """Return the table of what took the most time, and the part of the trace in which the device was busy."""
        if self._facts is None:
            raise NotInForce(_nothing(self._first + TRACED_STEPS, self._steps))
        return self._facts


class NsysTracer:
    """Tells Nsight Systems, under which the launch was started, where its capture begins and ends."""

    def __init__(self, first_step: int, device: torch.device, rank: int) -> None:
        self._first = first_step
        self._device = device
        # One rank tells; the others are captured meanwhile.
        self._tells = rank == 0
        self._steps = 0

    def step_ended(self) -> None:
        """Begin behind the warm-up, end some steps later."""
        self._steps += 1
        if not self._tells or self._steps not in (self._first, self._first + TRACED_STEPS):
            return
        torch.cuda.synchronize(self._device)
        if self._steps == self._first:
            torch.cuda.profiler.start()
        else:
            torch.cuda.profiler.stop()

    def facts(self) -> dict[str, Any]:
        """Return how many steps were captured."""
        if self._steps < self._first + TRACED_STEPS:
            raise NotInForce(_nothing(self._first + TRACED_STEPS, self._steps))
        return {"tool": "nsys", "steps": TRACED_STEPS}


def make_tracer(spec: contract.LaunchSpec, rank: int, device: torch.device, first_step: int) -> Tracer:
    """Return what captures the steps of a launch that was started for it."""
    if spec.trace == "nsys":
        return NsysTracer(first_step, device, rank)
    path = os.path.join(spec.out_dir, contract.TRACE_FILE.format(rank=rank))
    return TorchTracer(path, first_step, device)


@contextlib.contextmanager
def named(name: str, on_gpu: bool) -> Iterator[None]:
    """Give what happens inside a name that profilers show."""
    with record_function(name), torch.cuda.nvtx.range(name) if on_gpu else contextlib.nullcontext():
        yield


def train_traced(
    model: torch.nn.Module,
    device: torch.device,
    train_loader: Iterable[Any],
    loss_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    meter: Meter,
    tracer: Tracer,
) -> bool:
    """Do what `perf.training.loop.train` does, with a range around each part of a step."""
    model.train()
    on_gpu = device.type == "cuda"
    batches = iter(train_loader)
    while True:
        with named("step", on_gpu):
            with named("data", on_gpu):
                batch = next(batches, None)
            if batch is None:
                return True
            with named("data copy", on_gpu):
                data, target = batch[0].to(device), batch[1].to(device)
            optimizer.zero_grad()
            with named("forward", on_gpu):
                loss = loss_function(model(data), target)
            with named("backward", on_gpu):
                loss.backward()
            with named("optimizer", on_gpu):
                optimizer.step()
        tracer.step_ended()
        if meter.step(loss, target):
            return False


def _nothing(needed: int, steps: int) -> str:
    return (
        f"a trace of {TRACED_STEPS} steps was asked for and is empty: it ends with step {needed}, and the launch "
        f"had {steps}"
    )


def _facts_of(seen: profile, path: str, seconds: float, on_gpu: bool) -> dict[str, Any]:
    """Return a finished profile's table and shares, from what was written and, of operators, from the profile."""
    try:
        events = tracefile.read_events(path)
    except (ValueError, KeyError, TypeError) as error:
        raise NotInForce(f"the trace that torch wrote to {path} can't be read: {error!r:.200}") from error
    rows = tracefile.device_rows(events) if on_gpu else _operators(seen)
    whole = sum(row["seconds"] for row in rows)
    return {
        "tool": "torch",
        "steps": TRACED_STEPS,
        "seconds": seconds,
        "step_seconds": tracefile.step_seconds(events),
        "device_busy_share": tracefile.busy_share(events, seconds),
        "all_reduces": tracefile.count_of(events, OPERATORS["all_reduces"]) / TRACED_STEPS,
        "top": [{**row, "share": row["seconds"] / whole} for row in rows[:TOP_KERNELS]],
    }


def _operators(seen: profile) -> list[dict[str, Any]]:
    """Return operators by the time of their own on the host, without those that they call. torch's is microseconds."""
    rows = [
        {"name": event.key[:200], "calls": event.count, "seconds": event.self_cpu_time_total / 1e6}
        for event in seen.key_averages()
        if event.key not in RANGES
        and not event.key.startswith("ProfilerStep")
        and event.self_cpu_time_total > 0
    ]
    return sorted(rows, key=lambda row: -row["seconds"])
