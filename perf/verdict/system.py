"""Which system a run was on, and which system's references hold for it. Pure.

A system is GPU model, GPUs a node, the GPUs' power limit and the host's CPU: what a step's time is made of. What is
known to differ never matches; what one side does not know is passed over, and said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["NO_GPU", "Match", "System", "match", "system_of"]

NO_GPU = "none"
"""GPU model of a system without GPUs."""

POWER_TOLERANCE_WATTS = 1.0
"""NVML gives milliwatts and sites write watts: 699.9 and 700 are one limit."""


@dataclass(frozen=True)
class System:
    """What identifies a system. None where it isn't known, or doesn't matter.

    Attributes
    ----------
    gpu
        Model of the GPUs, as the driver names it; `NO_GPU` without any.
    gpus
        GPUs of a node.
    power_limit_watts
        Limit of each GPU, in W.
    cpu
        Model of the host's CPU, as /proc/cpuinfo names it.
    """

    gpu: str
    gpus: int
    power_limit_watts: float | None = None
    cpu: str | None = None

    @property
    def slug(self) -> str:
        """A file name for it: small letters, digits and hyphens."""
        parts = [f"{self.gpus}x {self.gpu}"] if self.gpus else ["cpu"]
        if self.power_limit_watts is not None:
            parts.append(f"{self.power_limit_watts:.0f}w")
        parts.append(self.cpu or "")
        text = re.sub(r"\((r|tm|c)\)|@.*$|\bcpu\b(?=.)|\bprocessor\b", " ", " ".join(parts).lower())
        text = text if self.gpus else f"cpu {text}"
        return re.sub(r"[^a-z0-9]+", "-", text).strip("-")

    @property
    def words(self) -> str:
        """The system in words."""
        gpus = f"{self.gpus} x {self.gpu}" if self.gpus else "no GPU"
        if self.gpus and self.power_limit_watts is not None:
            gpus += f" at {self.power_limit_watts:.0f} W"
        return f"{gpus}, {self.cpu or 'unknown CPU'}"


def system_of(environment: Mapping[str, Any]) -> System:
    """Return the system that a run's ``environment.json`` describes.

    GPUs of several models are named with all of them; the power limit is that of the lowest one.
    """
    stack = environment.get("stack")
    found = stack.get("gpus") if isinstance(stack, Mapping) else None
    gpus = [gpu for gpu in found if isinstance(gpu, Mapping)] if isinstance(found, list) else []
    limits = environment.get("gpu_power_limits_watts")
    known = [w for w in limits if isinstance(w, (int, float))] if isinstance(limits, list) else []
    cpu = environment.get("cpu_model")
    return System(
        gpu=" + ".join(sorted({str(gpu.get("name")) for gpu in gpus})) or NO_GPU,
        gpus=len(gpus),
        power_limit_watts=float(min(known)) if gpus and known else None,
        cpu=cpu if isinstance(cpu, str) and cpu.strip() else None,
    )


@dataclass(frozen=True)
class Match:
    """A system whose references hold, and how far that goes.

    Attributes
    ----------
    index
        Its place among those that were offered.
    notes
        What had to be passed over, in words; empty for the same system.
    provisional
        Whether something is not known, so that a miss can't be held against the stack.
    """

    index: int
    notes: tuple[str, ...]
    provisional: bool


def match(here: System, known: Sequence[System]) -> list[Match]:
    """Return the systems whose references hold here, the nearest first.

    In this order: the same system; the same with more GPUs a node, whose variants of fewer GPUs run here too; then
    those that are known less exactly: power limit, then CPU, then both not known on one of the sides.
    """
    found = []
    for index, other in enumerate(known):
        if other.gpu != here.gpu or other.gpus < here.gpus:
            continue
        if here.cpu is not None and other.cpu is not None and here.cpu != other.cpu:
            continue
        limits = (here.power_limit_watts, other.power_limit_watts)
        if None not in limits and abs(limits[0] - limits[1]) > POWER_TOLERANCE_WATTS:  # type: ignore[operator]
            continue
        no_power = here.gpus > 0 and None in limits
        no_cpu = None in (here.cpu, other.cpu)
        notes = []
        if no_power:
            notes.append(f"the power limit is not known {_side(limits[0])}")
        if no_cpu:
            notes.append(f"the host's CPU is not known {_side(here.cpu)}")
        if other.gpus > here.gpus:
            notes.append(f"the reference's nodes have {other.gpus} GPUs, {here.gpus} are visible here")
        rank = (2 * no_cpu + no_power, other.gpus - here.gpus, index)
        found.append((rank, Match(index, tuple(notes), no_power or no_cpu)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _side(here: Any) -> str:
    return "here" if here is None else "of the reference"
