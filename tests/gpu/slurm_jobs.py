"""gpu_perf as jobs of a real Slurm, with NCCL, on one GPU and on two: ``python tests/gpu/slurm_jobs.py STACK OUT``.

Starts a Slurm of one node with this machine's GPUs (tests/slurm), submits both runs, and stops it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.slurm.cluster import Cluster  # noqa: E402

SITE = """\
[scheduler]
kind = "slurm"
poll_seconds = 1.0
accounting_seconds = 5.0
exclusive = false

[node]
gpus = {gpus}
cores = {cores}
cores_per_gpu = {part}

[stacks.current]
python = "{stack}"
"""

RUNS = {1: "mnist_cnn and world_size_1", 2: "mnist_cnn and (world_size_1 or weak_scaling or slower_than_dp)"}
"""By the GPUs of a node: which tests."""


def main(words: list[str]) -> int:
    """Run both; return the worst exit status but `inconclusive`, which single launches end with."""
    stack, out = shutil.which(words[0]) or words[0], Path(words[1]).absolute()
    out.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    cluster = Cluster.create(root, accounting=False, gpus=max(RUNS))
    worst = 0
    try:
        cluster.start()
        shutil.copy(root / "slurm.conf", out)
        print(cluster.run("sinfo", "--Node", "--format=%N %T %c %G").stdout, flush=True)
        for gpus, expression in RUNS.items():
            part = len(os.sched_getaffinity(0)) // max(RUNS)
            site = out / f"site-{gpus}.toml"
            site.write_text(
                SITE.format(gpus=gpus, cores=gpus * part, part=part, stack=stack), encoding="utf-8"
            )
            status = subprocess.run(
                [
                    *(sys.executable, "-m", "perf.cluster", "run", f"--site={site}", "--stack=current"),
                    *(
                        "--profile=quick",
                        "--device=cuda",
                        "--launches=1",
                        f"--results={out / f'gpus-{gpus}'}",
                    ),
                    # Other steps of a campaign may run on this node's other GPUs, and share it without a pause.
                    *("--share-node", "-k", expression),
                ],
                cwd=ROOT,
                env=cluster.environment(),
                check=False,
            ).returncode
            print(f"{gpus} GPUs: status {status}", flush=True)
            worst = max(worst, 0 if status == 10 else status)
        print(cluster.run("scontrol", "show", "jobs", check=False).stdout, flush=True)
    finally:
        # A daemon that died at its start has told why in NAME.out.
        for log in sorted((root / "log").glob("*.*")):
            shutil.copy(log, out)
        cluster.remove()
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
