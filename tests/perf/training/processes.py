"""The worker in processes of its own: small launches of `mnist_cnn` on the CPU, and what they left."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from perf import contract
from perf.contract import LaunchSpec, RankRecord
from perf.workloads import WORKLOADS
from tests.perf.training.helpers import make_spec

ROOT = Path(__file__).parents[3]
MNIST = WORKLOADS["mnist_cnn"]

TIMEOUT = 300
"""Seconds after which a worker hangs. One takes 3 to 8 s on two quiet cores, most of it for importing torch."""


@dataclasses.dataclass(frozen=True)
class Done:
    """A launch that has ended: its exit status, what it printed, and the folder that it wrote to."""

    status: int
    stderr: str
    folder: Path

    def record(self, rank: int = 0) -> RankRecord:
        path = self.folder / contract.RANK_FILE.format(rank=rank)
        return contract.decode(RankRecord, path.read_bytes(), str(path))

    def phase(self, rank: int = 0) -> str:
        return json.loads((self.folder / f"state-{rank}.json").read_text(encoding="utf-8"))["phase"]  # type: ignore[no-any-return]


def mnist(folder: Path, cache: Path, **changes: Any) -> LaunchSpec:
    """The spec of a small launch: 8 warm-up and 12 timed steps of 16 samples."""
    fields = {
        "variant": "mnist_cnn-single-1cpu-fp32-native0",
        "workload": "mnist_cnn",
        "parameters": MNIST.parameters,
        "train_samples": MNIST.train_samples,
        "validation_samples": MNIST.validation_samples,
        "batch_size": 16,
        "warmup_steps": 8,
        "timed_steps": 12,
        "cache_dir": str(cache),
    }
    return make_spec(folder, **{**fields, **changes})


def start(spec: LaunchSpec) -> Done:
    """Run one launch as the driver does: under torchrun for DDP, else by itself."""
    path = Path(spec.out_dir, contract.SPEC_FILE)
    contract.write_whole(str(path), contract.encode(spec))
    prefix = []
    if spec.strategy == "ddp":
        prefix = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={spec.ranks_per_node}"]
    return run([*prefix, "-m", "perf.training.worker", str(path)], path.parent)


def run(arguments: list[str], folder: Path) -> Done:
    """Run the stack's Python with those words, without what pytest or a launcher left in the environment."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "RANK", "WORLD"))
    }
    environment["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return Done(done.returncode, done.stderr, folder)
