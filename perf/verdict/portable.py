"""Fractions of a machine's own rates: what a variant makes of what the machine can do, comparable between machines.

A rate of samples belongs to one system. The part of its matrix peak, of its link, of its host that a variant reaches is
much the same on many, so it tells something on the day on which a system has no reference yet.

Each fraction is the time that one resource would be busy at its measured rate, over the time that passed. The largest
one names the bound that is nearest; 1 minus it is time that this bound does not explain.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perf.verdict.inputs import check_cap
from perf.verdict.one_sample import judge_one_sample
from perf.verdict.outcome import Judgement, Verdict

__all__ = [
    "BOUNDS",
    "FAR",
    "Known",
    "Step",
    "fractions",
    "governing",
    "judge_portable",
    "known_in_words",
    "nearest_in_words",
]

BOUNDS = {
    "matrix": "the matrix product in its precision",
    "host_to_device": "the copy from pinned host memory",
    "all_reduce": "the all-reduce of its gradients",
    "kernel_launches": "the host's launches of kernels",
}
"""What can hold a step up, in words."""

FAR = 0.2
"""Below this part of every bound a run is far from all of them: four fifths of its time have another explanation."""

PRECISE = ("fp32", "tf32", "fp16", "bf16")
"""Precisions whose products are all of one kind. ``default`` is torch's own choice, on a GPU a mixture."""


@dataclass(frozen=True)
class Step:
    """What one training step has to do, on each device.

    Parameters
    ----------
    samples
        A device's samples.
    flops
        Of one sample, forward and backward, in products and convolutions.
    copied_bytes
        Bytes of one sample that pass from the host to the device in each step; 0 where the data lie there already.
    operators
        Kernels that the host launches at least; None where it launches a whole graph or fused kernels instead.
    precision
        One of the catalogue's.
    ranks
        Ranks of DDP that exchange gradients; 1 for none.
    gradient_bytes
        Bytes of gradients that they exchange.
    gradients_of
        Workload whose all-reduce was measured with these gradients.
    """

    samples: int
    flops: int
    copied_bytes: int
    operators: int | None
    precision: str
    ranks: int = 1
    gradient_bytes: int = 0
    gradients_of: str = ""


def fractions(step: Step, samples_per_second: float, rates: Mapping[str, float]) -> dict[str, float]:
    """Return which part of each of a machine's rates a variant makes use of.

    Parameters
    ----------
    step
        What a step has to do.
    samples_per_second
        One device's: the launch's throughput over its devices.
    rates
        The machine's card: a rate's name -> its value (FLOP/s, B/s, 1/s). One that is missing leaves its fraction out.

    Returns
    -------
    dict
        ``matrix``: FLOP of the samples over the product's rate, the model FLOP utilization against the measured peak.
        ``host_to_device``: bytes of the samples over the link's. ``all_reduce``: the share of the time that the
        exchange alone would take, overlapped or not. ``kernel_launches``: launches over those that the host can do, a
        lower bound, since the optimizer's are not counted.

    Raises
    ------
    ValueError
        If the throughput or a rate is not positive and finite.
    """
    for name, value in (("samples_per_second", samples_per_second), *rates.items()):
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} is a positive number, got {value!r}")
    steps = samples_per_second / step.samples
    moved = 2.0 * (step.ranks - 1) / step.ranks * step.gradient_bytes
    needed = {
        "matrix": (step.flops * samples_per_second, f"matmul_{step.precision}"),
        "host_to_device": (step.copied_bytes * samples_per_second, "host_to_device_pinned"),
        "all_reduce": (moved * steps, f"all_reduce_{step.gradients_of}"),
        "kernel_launches": ((step.operators or 0) * steps, "kernel_launches"),
    }
    return {
        bound: amount / rates[name] for bound, (amount, name) in needed.items() if amount and name in rates
    }


def nearest_in_words(found: Mapping[str, float]) -> str:
    """Say which bound is nearest, and how near: 'nearest bound: the copy from pinned host memory, at 61 %'."""
    if not found:
        return "no bound is known: the machine's card lacks the rates that it would be held against"
    bound = max(found, key=lambda name: found[name])
    text = f"{BOUNDS[bound]}, at {100.0 * found[bound]:.2g} %"
    if found[bound] < FAR:
        return f"far from every bound that was measured; the nearest is {text}"
    return f"nearest bound: {text}"


@dataclass(frozen=True)
class Known:
    """What a variant reached on one known system: `fractions` by bound."""

    system: str
    fractions: Mapping[str, float]


def governing(known: Sequence[Known]) -> str | None:
    """Return the bound that a variant is held against: the one that is nearest on the known systems.

    It is the bound with the largest median, among those that every known system has; None without any.
    """
    shared = set.intersection(*(set(system.fractions) for system in known)) if known else set()
    if not shared:
        return None
    # Sorted, so that two bounds alike give one answer always.
    return max(sorted(shared), key=lambda bound: statistics.median(s.fractions[bound] for s in known))


def known_in_words(known: Sequence[Known]) -> str:
    """Say what a variant reaches of its governing bound on known systems: 'matrix 41 to 55 % on 3'; '' without any."""
    bound = governing(known)
    if bound is None:
        return ""
    found = sorted(100.0 * system.fractions[bound] for system in known)
    ends = f"{found[0]:.2g}" if len(found) == 1 else f"{found[0]:.2g} to {found[-1]:.2g}"
    return f"{bound} {ends} % on {len(found)}"


def judge_portable(
    values: Sequence[float], known: Sequence[float], *, tolerance: float, cap: int
) -> Judgement:
    """Judge that a fraction is not below `tolerance` times the smallest one on known systems.

    The rule is that of one sample (``perf.verdict.one_sample``) for the inverse: the floor over the fraction is at
    most 1.

    Parameters
    ----------
    values
        The fraction in each launch, in launch order.
    known
        The fraction on each known system.
    tolerance
        Part of the smallest known fraction that still passes, above 0 and at most 1.
    cap
        Launches that the profile affords.

    Returns
    -------
    Judgement
        In fractions; `unreferenced` where no system is known. `low` is what `pass` holds against the floor, `high` the
        bound that `fail` does.

    Raises
    ------
    ValueError
        If a fraction is not positive and finite, or the tolerance is not in (0, 1].
    """
    if not 0.0 < tolerance <= 1.0:
        raise ValueError(f"the tolerance is a part, above 0 and at most 1, got {tolerance!r}")
    check_cap(cap)
    for value in (*values, *known):
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"a fraction is a positive number, got {value!r}")
    if not known:
        middle = statistics.median(values) if values else math.nan
        low, high = (min(values), max(values)) if values else (math.nan, math.nan)
        reason = ("No known system has a fraction of this variant to hold it against.",)
        return Judgement(Verdict.UNREFERENCED, middle, low, high, math.nan, len(values), None, reason, 0)
    floor = tolerance * min(known)
    found = judge_one_sample([floor / value for value in values], limit=1.0, cap=cap)
    systems = f"{len(known)} known system{'' if len(known) == 1 else 's'}"
    about = (
        f"The floor is {floor:.3g}: {tolerance:g} times the smallest fraction of {systems}, {min(known):.3g}.",
        f"It is {floor / found.estimate:.3g} here ({found.launches} launches).",
    )
    reasons = about if found.verdict in (Verdict.PASS, Verdict.FAIL) else (*found.reasons, *about)
    return Judgement(
        verdict=found.verdict,
        estimate=floor / found.estimate,
        low=floor / found.high,
        high=floor / found.low if found.low > 0.0 else math.inf,  # one launch has no bound
        limit=floor,
        launches=found.launches,
        detectable=found.detectable,
        reasons=reasons,
        wants=found.wants,
    )
