"""The power limits of the GPUs that the stack sees: part of what identifies a system. Asks NVML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["power_limits_watts"]


def power_limits_watts(gpus: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return the enforced power limit of each GPU, in W; null where there is no NVML, or it does not say.

    Parameters
    ----------
    gpus
        What the stack's probe found: ``uuid`` as torch writes it, without NVML's prefix.
    """
    if not gpus:
        return []
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # noqa: BLE001 - no library, no driver, another vendor's GPUs: all mean that NVML can't say
        return [None for _ in gpus]
    try:
        return [_limit(pynvml, str(gpu.get("uuid") or "")) for gpu in gpus]
    finally:
        pynvml.nvmlShutdown()


def _limit(nvml: Any, uuid: str) -> float | None:
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
        return float(nvml.nvmlDeviceGetEnforcedPowerLimit(handle)) / 1000.0  # NVML gives milliwatts
    except nvml.NVMLError:
        # A MIG instance has no limit of its own, and some cards have none at all.
        return None
