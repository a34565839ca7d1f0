"""From a run's launches to fractions of the machine's own rates. What a fraction means: ``docs/rates.md``."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from perf.contract import LaunchRecord
from perf.machine import REPOSITORY
from perf.tomlfile import TomlError
from perf.verdict.portable import Step, fractions
from perf.verdict.portable_table import PortableTable, parse
from perf.workloads import WORKLOADS

KNOWN_FILE: Path = REPOSITORY / "perf" / "references" / "portable" / "known.toml"

COPYING = ("native", "batched")
"""Loaders that make batches on the host, from where each is copied to the device."""

HOST_IS_SPARED = {"cuda_graph", "compile"}
"""Optimizations after which the host launches whole graphs or fused kernels, of which nobody knows the number."""


def known_systems(complaint: Callable[[str], str | None] = lambda variant: None) -> PortableTable:
    """Return the table of known systems. Reads a file.

    Parameters
    ----------
    complaint
        Says what is wrong with the name of a variant.

    Raises
    ------
    perf.tomlfile.TomlError
        If it can't be used.
    """
    return parse(KNOWN_FILE.read_text(encoding="utf-8"), str(KNOWN_FILE), complaint)


def systems_to_show() -> tuple[PortableTable | None, list[str]]:
    """Return the table of known systems for a report, or None and a note why it can't be shown. Reads a file."""
    try:
        return known_systems(), []
    except (OSError, TomlError) as error:
        return None, [f"known systems can't be shown: {error}"]


def step_of(launch: LaunchRecord) -> Step | None:
    """Return what a step of a launch has to do on each device; None where it trains nothing that is known.

    On a CPU all ranks share the processor whose rates were measured, so the work is that of all of them.
    """
    known = WORKLOADS.get(launch.workload)
    if known is None or launch.mode == "io" or launch.plan in ("audit", "rates"):
        return None
    on_gpu = launch.device == "cuda"
    ranks = launch.nodes * launch.ranks_per_node
    launches = None if HOST_IS_SPARED & set(launch.optimizations) else known.operators
    if launches and launch.strategy == "dp":
        # One process launches the kernels of all its devices.
        launches *= launch.gpus
    return Step(
        samples=launch.batch_size,
        flops=known.flops * (1 if on_gpu else ranks),
        copied_bytes=known.sample_bytes
        if on_gpu and launch.mode == "full" and launch.loader in COPYING
        else 0,
        operators=launches,
        precision=launch.precision,
        ranks=ranks if launch.strategy == "ddp" else 1,
        gradient_bytes=4 * known.parameters,
        gradients_of=launch.workload.removesuffix("_224"),
    )


def devices_of(launch: LaunchRecord) -> int:
    """Return the devices that share a launch's samples: GPUs, or ranks on a CPU."""
    ranks = launch.nodes * launch.ranks_per_node
    return launch.gpus if launch.strategy == "dp" else ranks


def card_of(launches: Iterable[LaunchRecord], device: str) -> dict[str, float]:
    """Return a machine's card: the median over valid launches of each rate of one kind of device."""
    values: dict[str, list[float]] = {}
    for launch in launches:
        if launch.device == device and launch.valid:
            for name, rate in launch.rates.items():
                if rate.value is not None:
                    values.setdefault(name, []).append(rate.value)
    return {name: statistics.median(found) for name, found in values.items()}


def fractions_of(launch: LaunchRecord, card: dict[str, float]) -> dict[str, float]:
    """Return a launch's fractions of a card's rates; none where it trained nothing, or has no rate to be held against.

    A launch that was not fit to be judged has none either.
    """
    step = step_of(launch)
    if step is None or not launch.valid or launch.samples_per_second <= 0.0:
        return {}
    return fractions(step, launch.samples_per_second / devices_of(launch), card)


def medians(launches: Sequence[LaunchRecord], card: dict[str, float]) -> dict[str, float]:
    """Return the median over launches of each fraction that all of them have."""
    found = [of for of in (fractions_of(launch, card) for launch in launches) if of]
    shared = [bound for bound in found[0] if all(bound in of for of in found)] if found else []
    return {bound: statistics.median(of[bound] for of in found) for bound in shared}
