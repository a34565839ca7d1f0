"""``python -m perf.training.sampled PYTHON``: what the sampler beside a launch costs, sampled over unsampled steps.

A workload trains on batches that lie on the device, in blocks of some seconds. A sampler as a launch has it (run by
PYTHON, the driver's) follows the process, and is stopped by a signal in every other block, in the order stopped,
running, running, stopped … Each pair of neighbouring blocks gives one ratio; the median ratio and an exact interval
from its order statistics are printed as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.utils.data import Dataset

from models.interface import Workload, load_workload, workload_names
from perf.ending import finish
from perf.training.identity import device_name
from perf.training.loaders import LoaderPlan, native_loader
from perf.training.paired import CONFIDENCE, FEWEST_PAIRS, Block, bare, median_interval
from perf.training.ring import RingLoader
from perf.training.stackinfo import stack_info

SAMPLER = "perf.launch.telemetry.sampler"


def measure(
    workload: Workload, device: torch.device, sampler: int, pairs: int, seconds: float, seed: int
) -> list[tuple[float, float]]:
    """Return seconds a step of each pair of blocks: sampler stopped, sampler running.

    Parameters
    ----------
    sampler
        The sampler's PID; a child of this process.
    seconds
        Of a block, about: at least two looks should fall into it.
    """
    dataset, _ = workload.train_set(None, tempfile.gettempdir())
    plan = LoaderPlan(workload.BATCH_SIZE, 0, 0, 1, distributed=False, pin_memory=False, seed=seed)
    ring = RingLoader(native_loader(cast("Dataset[Any]", dataset), plan), device).filled()
    torch.manual_seed(seed)
    model = workload.build_model().to(device)
    optimizer = workload.make_optimizer(model)

    def block(steps: int) -> float:
        batches: Any = Block(ring, steps)
        before = time.perf_counter()
        bare(model, device, batches, workload.loss_function, optimizer)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        # One batch comes in front of a block's own.
        return (time.perf_counter() - before) / (steps + 1)

    block(5)
    steps = max(1, round(seconds / block(10)))
    found = []
    runs = True
    for pair in range(pairs):
        took = {}
        for running in (False, True) if pair % 2 == 0 else (True, False):
            if running != runs:
                os.kill(sampler, signal.SIGCONT if running else signal.SIGSTOP)
                if not running:
                    # A busy machine stops a process some time after it was told to.
                    os.waitpid(sampler, os.WUNTRACED)
                runs = running
            took[running] = block(steps)
        found.append((took[False], took[True]))
    os.kill(sampler, signal.SIGCONT)
    return found


def main(arguments: Sequence[str]) -> int:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m perf.training.sampled",
        description="Says what sampling beside a launch costs: pairs of blocks, with and without it.",
    )
    parser.add_argument("python", help="the driver's Python, which has psutil")
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
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a block (default: 2)")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default: 1)")
    options = parser.parse_args(arguments)
    if options.pairs < FEWEST_PAIRS or options.seconds <= 0 or options.threads < 1:
        parser.error(f"at least {FEWEST_PAIRS} pairs, more than 0 seconds and 1 thread are needed")
    torch.set_num_threads(options.threads)
    device = torch.device(options.device, 0) if options.device == "cuda" else torch.device("cpu")
    with tempfile.TemporaryDirectory() as folder:
        command = [options.python, "-m", SAMPLER, folder]
        if options.device == "cuda":
            command += ["--gpus", "amdsmi" if getattr(torch.version, "hip", None) else "nvml"]
        sampler = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert sampler.stdin is not None
        try:
            sampler.stdin.write(f"root {os.getpid()}\n".encode("ascii"))
            sampler.stdin.flush()
            seconds = measure(
                load_workload(options.workload),
                device,
                sampler.pid,
                options.pairs,
                options.seconds,
                options.seed,
            )
        finally:
            sampler.send_signal(signal.SIGCONT)
            sampler.stdin.close()
            # Not Popen.wait: this one also says how much CPU time it used.
            _, status, used = os.wait4(sampler.pid, 0)
            sampler.returncode = os.waitstatus_to_exitcode(status)
    ratios = [sampled / alone for alone, sampled in seconds]
    low, high = median_interval(ratios)
    print(
        json.dumps(
            {
                "workload": options.workload,
                "device": device_name(device),
                "cores": len(os.sched_getaffinity(0)),
                "threads": options.threads,
                "torch": stack_info()["torch"],
                "pairs": options.pairs,
                "block_seconds": options.seconds,
                "step_ms": 1000 * statistics.median(alone for alone, _ in seconds),
                "ratio": statistics.median(ratios),
                "low": low,
                "high": high,
                "confidence": CONFIDENCE,
                "sampler_cpu_seconds": used.ru_utime + used.ru_stime,
            }
        )
    )
    return 0


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
