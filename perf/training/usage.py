"""What a rank used of its node: processor time, memory, threads, cores."""

from __future__ import annotations

import os
import resource
from typing import Any

import torch


def usage() -> dict[str, Any]:
    """Return CPU seconds and peak memory of this rank and of its ended children, the loader's workers."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_seconds": own.ru_utime + own.ru_stime,
        "children_cpu_seconds": children.ru_utime + children.ru_stime,
        "max_rss_bytes": own.ru_maxrss * 1024,
        "children_max_rss_bytes": children.ru_maxrss * 1024,
    }


def threads() -> dict[str, Any]:
    """Return the threads that torch has on this rank, and the cores that it may use."""
    return {
        "torch": torch.get_num_threads(),
        "interop": torch.get_num_interop_threads(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "core_ids": sorted(os.sched_getaffinity(0)),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
    }
