"""What to try about what was found. Pure."""

from __future__ import annotations

from perf.verdict.moved import COMMUNICATION, NOT_MOVED, Moved
from perf.verdict.slow_steps import SlowSteps

__all__ = ["TRY", "TRY_OF_ALL", "TRY_OF_LATE", "TRY_OF_MEMORY", "TRY_OF_SLOW", "advice_for"]

TRY = {
    "data": "give the loader more workers or cores, and look at its line in the line profile",
    "copy": "look at whether batches are pinned, and at the GPU's link (`nvidia-smi -q -d PCIE`)",
    "forward": "look at the precision in force, at autotuning and at the clock of the GPU",
    "backward": "look at the precision in force, at autotuning and at the clock of the GPU",
    COMMUNICATION: "look at NCCL's transport (`NCCL_DEBUG=INFO`), at `nvidia-smi topo -m` and at DDP's buckets",
    "optimizer": "look at the optimizer's implementation (`fused`, `foreach`) and at what runs beside it on that host",
    "start-up": "look at the file system that the stack lies on, and at what is compiled or searched for at the start",
}

TRY_OF_SLOW = (
    "look for what interrupts that host or GPU for a moment: another process, a garbage collection, a checkpoint, a "
    "clock that drops"
)

TRY_OF_ALL = "look at what slows every phase: clocks and power of the GPU, and other work on the node"

TRY_OF_MEMORY = (
    "look at the allocator's settings (`PYTORCH_CUDA_ALLOC_CONF`) and at what is kept from step to step"
)

TRY_OF_LATE = "look at that rank's host and GPU: clocks, other processes, the cores that it is bound to"


def advice_for(moved: Moved | None, slow: SlowSteps | None, metric: str) -> str:
    """Return what to try, '' where nothing is known to look at.

    Parameters
    ----------
    moved
        The phase that moved; None where none was timed.
    slow
        What is known of slow steps, where these were judged.
    metric
        What was judged.
    """
    if metric == "peak_memory":
        return TRY_OF_MEMORY
    if slow is not None:
        return TRY[slow.phase] if slow.phase in ("data", COMMUNICATION) else TRY_OF_SLOW
    if moved is None:
        return ""
    if moved.stayed:
        return TRY_OF_ALL if moved.grown >= NOT_MOVED else ""
    return TRY_OF_LATE if moved.late else TRY[moved.phase]
