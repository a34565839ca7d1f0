"""The host: how fast the interpreter runs, and how fast it hands small work to a device."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch

from perf.contract import Rate
from perf.training.rates.timing import Timer, rate

UNIT = "1/s"

ITERATIONS = 20_000
"""Of the Python loop in a call: a millisecond and more, beside which the call is nothing."""

LAUNCHES = 200
"""Kernels in a call: fewer than the 1,024 that CUDA queues before the host has to wait."""

ROUND_TRIPS = 20


def python_loop(timer: Timer) -> tuple[str, Rate]:
    """Return how many iterations of a loop in pure Python run in a second: one addition and one remainder each."""
    seconds = timer.repeat(count)
    version = "{}.{}.{}".format(*sys.version_info[:3])
    return "python_loop", rate(
        ITERATIONS, UNIT, seconds, implementation=sys.implementation.name, python=version
    )


def count() -> int:
    """Run the loop once."""
    total = 0
    for number in range(ITERATIONS):
        total += number % 7
    return total


def kernel_launches(device: torch.device, timer: Timer) -> Iterator[tuple[str, Rate]]:
    """Yield how many small kernels a second Python can launch, and on a GPU how many it can launch and wait for.

    The kernel adds 1 to one number. Launched back to back it is bound by the host (interpreter, torch's dispatcher,
    driver), as a small network is; on a host that launches faster than the kernel runs, by the kernel itself. Its
    inverse is the launch latency.
    """
    number = torch.zeros(1, device=device)

    def launch() -> None:
        for _ in range(LAUNCHES):
            number.add_(1.0)

    def round_trip() -> None:
        for _ in range(ROUND_TRIPS):
            number.add_(1.0)
            timer.synchronize()

    with torch.no_grad():
        yield "kernel_launches", rate(LAUNCHES, UNIT, timer.repeat(launch), kernel="add_(1.0) on 1 number")
        if device.type == "cuda":
            trips = timer.repeat(round_trip)
            yield "kernel_round_trips", rate(ROUND_TRIPS, UNIT, trips, kernel="add_(1.0) on 1 number")
