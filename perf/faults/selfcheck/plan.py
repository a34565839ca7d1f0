"""Which faults a machine carries, and in which order they are planted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perf.faults.fault import Fault

__all__ = ["Carrier", "Plan", "Step", "plan", "seconds_for", "why_not"]

CPU_SECONDS = 2400.0
"""What a self-check on the CPU may take: 40 minutes, on two cores that are its own."""

ONE_GPU_SECONDS = 540.0
"""On one GPU: nine minutes, so that it fits into a lease of ten."""

MORE_GPUS_SECONDS = 1800.0
"""On two GPUs and more, which also carry what lies between them."""


@dataclass(frozen=True)
class Carrier:
    """What there is to plant faults on. `device` is ``cpu`` or ``cuda``."""

    device: str
    cores: int
    gpus: int
    root: bool


@dataclass(frozen=True)
class Step:
    """One fault and how many clean judgements follow it."""

    fault: Fault
    clean: int


@dataclass(frozen=True)
class Plan:
    """What is planted in which order, and why the rest is not (by name)."""

    steps: tuple[Step, ...]
    left_out: Mapping[str, str]


def seconds_for(carrier: Carrier) -> float:
    """Return how long a self-check may take on a machine."""
    if carrier.device == "cpu":
        return CPU_SECONDS
    return ONE_GPU_SECONDS if carrier.gpus < 2 else MORE_GPUS_SECONDS


def why_not(fault: Fault, carrier: Carrier) -> str:
    """Return why a machine can't carry a fault, in words; empty if it can."""
    if fault.gpu != (carrier.device == "cuda"):
        return (
            "acts on a GPU (--device cuda)"
            if fault.gpu
            else "needs no GPU: planted on the CPU (--device cpu)"
        )
    if fault.gpu and fault.ranks > carrier.gpus:
        return f"needs {fault.ranks} GPUs, {carrier.gpus} here"
    if fault.ranks > carrier.cores:
        return f"needs {fault.ranks} cores, {carrier.cores} here"
    if fault.root and not carrier.root:
        return "can be planted by root only"
    return ""


def plan(faults: Iterable[Fault], carrier: Carrier, *, clean: int, seconds: float) -> Plan:
    """Return what is planted.

    Parameters
    ----------
    faults
        The most telling first: on GPUs those that no more time is left for are left out.
    clean
        Clean judgements in all, spread evenly between the faults.
    seconds
        Time for all of it, held against each fault's estimate on GPUs. On the CPU nothing is left out for time.
    """
    left_out: dict[str, str] = {}
    taken: list[Fault] = []
    left = seconds
    for fault in faults:
        reason = why_not(fault, carrier)
        if not reason and fault.gpu and fault.seconds > left:
            reason = (
                f"takes about {fault.seconds:.0f} s, {left:.0f} s of {seconds:.0f} s are left (--seconds)"
            )
        if reason:
            left_out[fault.name] = reason
            continue
        taken.append(fault)
        left -= fault.seconds if fault.gpu else 0.0
    # What one launch shows comes first: a check that is ended early has planted most faults by then.
    taken.sort(key=lambda fault: not fault.of_a_launch)
    share = clean / len(taken) if taken else 0.0
    # Rounding the running sum, so that the parts add up to the whole.
    counts = [round(share * (place + 1)) - round(share * place) for place in range(len(taken))]
    return Plan(tuple(Step(fault, count) for fault, count in zip(taken, counts, strict=True)), left_out)
