"""Settings as a record holds them, read back by the worker: which optimizations were in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def optimizations_in_force(effective: Mapping[str, Any]) -> set[str]:
    """Return the optimizations that a rank's `effective` settings show; none where a record is too old to tell."""
    compiled = effective.get("compiled")
    found = {
        "channels_last": _of(effective, "channels_last", "weights"),
        # Records from before 2026-11-29 say "asked".
        "non_blocking": _of(effective, "non_blocking", "in_force") or _of(effective, "non_blocking", "asked"),
        "fused": _of(effective, "optimizer_flags", "fused"),
        "compile": isinstance(compiled, Mapping) and compiled.get("frames", 0) > 0,
        "cuda_graph": _of(effective, "cuda_graph", "replays"),
        "autotune": effective.get("cudnn_benchmark"),
    }
    return {name for name, there in found.items() if there}


def _of(effective: Mapping[str, Any], part: str, key: str) -> Any:
    inside = effective.get(part)
    return inside.get(key) if isinstance(inside, Mapping) else None
