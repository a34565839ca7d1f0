"""What a group is declared with: its variants and what they are for, and a maker of variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perf.variants import Variant

GPU_COUNTS = (1, 2)
"""GPUs of the catalogue's variants: one, and the smallest number that has something to say to each other."""

CPU_RANKS = 2
"""Processes of DDP on the CPU."""


@dataclass(frozen=True)
class Declaration:
    """One group, without its name. The fields are those of `perf.catalogue.Group`; `members` are variants and plans."""

    question: str
    members: tuple[tuple[Variant, str], ...]
    not_in_smoke: tuple[Variant, ...] = ()
    judged: bool = True
    smoke_judged: bool = False
    once: bool = False
    profiles: tuple[str, ...] = ("smoke", "quick", "full")
    compared: bool = True
    """Whether two stacks are compared in its variants: in ways to train, not in each step of a sweep."""


class Maker:
    """Makes variants of one workload on one kind of device; `rest` holds where a variant does not say otherwise."""

    def __init__(self, workload: str, device: str, **rest: Any) -> None:
        self.workload = workload
        self._rest = rest
        self.device = device
        self.backend = "nccl" if device == "cuda" else "gloo"
        self.many = max(GPU_COUNTS) if device == "cuda" else CPU_RANKS

    def single(self, mode: str = "full", **rest: Any) -> Variant:
        """One process on one device."""
        return Variant(self.workload, "single", self.device, 1, mode=mode, **{**self._rest, **rest})

    def ddp(self, count: int, mode: str = "full", **rest: Any) -> Variant:
        """DistributedDataParallel."""
        rest = {**self._rest, **rest}
        return Variant(self.workload, "ddp", self.device, count, backend=self.backend, mode=mode, **rest)

    def dp(self, count: int, **rest: Any) -> Variant:
        """DataParallel."""
        return Variant(self.workload, "dp", self.device, count, **{**self._rest, **rest})


def windows(*variants: Variant) -> tuple[tuple[Variant, str], ...]:
    """Return variants as members that are timed in a window."""
    return tuple((variant, "window") for variant in variants)
