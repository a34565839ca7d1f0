"""Counts page faults a step in fresh processes and in forks of a server: ``python docs/measurements/fork_faults.py``.

Needs torch and two cores. Four servers take turns; each forks four processes, and beside each of them, on the other
core, a fresh one trains the same for the same steps. Prints a row a pair: times of a step, and faults a step.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import torch

STEPS, WARM_UP = 260, 60
SERVERS, FORKS = 4, 4
IMPORT_SECONDS = 4.5
"""What a fresh process imports before it trains; the fork beside it waits so long."""


def train(core: int) -> dict[str, float]:
    """Train a small 3-D network on one core; return the median step in seconds and the page faults of a step."""
    os.sched_setaffinity(0, [core])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv3d(4, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv3d(16, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv3d(16, 5, 3, padding=1),
    )
    optimizer = torch.optim.Adam(network.parameters())
    data, target = torch.randn(4, 4, 16, 16, 16), torch.randn(4, 5, 16, 16, 16)
    steps = []
    for step in range(STEPS):
        if step == WARM_UP:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        began = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.l1_loss(network(data), target).backward()
        optimizer.step()
        steps.append(time.perf_counter() - began)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return {"step": statistics.median(steps[WARM_UP:]), "faults": faults / (STEPS - WARM_UP)}


def serve() -> None:
    """Fork a training for each core that is read, and print what it measured."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            print(json.dumps(train(int(line))), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)


def main() -> None:
    """Run all pairs."""
    me = [sys.executable, __file__]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "env": environment}
    first, second = sorted(os.sched_getaffinity(0))[:2]
    print("server  fork: step ms  faults   fresh: step ms  faults")
    for server in range(SERVERS):
        with subprocess.Popen([*me, "serve"], stdin=subprocess.PIPE, **pipes) as serving:
            for turn in range(FORKS):
                mine, other = (first, second) if turn % 2 else (second, first)
                with subprocess.Popen([*me, str(other)], **pipes) as fresh:
                    time.sleep(IMPORT_SECONDS)
                    serving.stdin.write(f"{mine}\n")
                    serving.stdin.flush()
                    fork, new = json.loads(serving.stdout.readline()), json.loads(fresh.stdout.readline())
                words = [f"{one['step'] * 1e3:14.1f}{one['faults']:8.0f}" for one in (fork, new)]
                print(f"{server:6d}{words[0]}   {words[1]}", flush=True)
            serving.stdin.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif sys.argv[1:]:
        print(json.dumps(train(int(sys.argv[1]))), flush=True)
    else:
        main()
