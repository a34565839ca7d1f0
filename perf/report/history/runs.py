"""Observations of stored runs: a few fields of each launch, since there may be ten thousand runs. Reads files."""

from __future__ import annotations

import functools
import os
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from perf.faults.plant import FLAG
from perf.records import ENVIRONMENT, RECORDS
from perf.report.history.observations import Observation, with_ratios
from perf.verdict.system import system_of

__all__ = ["find_runs", "read_run"]

_DEVICES = re.compile(r"-[0-9]+(cpu|gpu)(-[0-9]+node)?(?=-)")
"""The part of a variant's id that says on how many devices it trains."""


class _Stack(msgspec.Struct):
    torch: str | None = None


class _Launch(msgspec.Struct):
    """What history has to know of a launch; msgspec passes over the rest of the line."""

    variant: str
    started_at: float
    samples_per_second: float
    valid: bool
    workload: str
    strategy: str
    nodes: int
    ranks_per_node: int
    gpus: int
    plan: str
    mode: str
    stack: _Stack = msgspec.field(default_factory=_Stack)
    side: str = ""
    flags: list[str] = []
    phase_seconds: msgspec.Raw | None = None
    line_profiles: list[str] = []
    operators: list[msgspec.Raw] = []

    @property
    def counts(self) -> bool:
        """Whether it says how fast the new stack trains: no window, loader alone, profile, fault or old side does."""
        return (
            self.valid
            and self.samples_per_second > 0.0
            and self.plan == "window"
            and self.mode != "io"
            and self.side != "old"
            and self.phase_seconds is None
            and not self.line_profiles
            and not self.operators
            and not any(flag.startswith(FLAG) for flag in self.flags)
        )


_DECODER = msgspec.json.Decoder(_Launch)


def find_runs(folders: Sequence[Path]) -> Iterator[str]:
    """Yield every run in some folders, each once: a folder that is a run itself, or the runs in it."""
    # Text, since there may be ten thousand: making a Path of each takes longer than reading its run.
    seen = set()
    for folder in map(os.path.realpath, folders):
        if os.path.isfile(f"{folder}/{RECORDS}"):
            found = [folder]
        else:
            # `latest` is a link to one of the others.
            names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
            found = [f"{folder}/{name}" for name in names if os.path.isfile(f"{folder}/{name}/{RECORDS}")]
        for run in found:
            if run not in seen:
                seen.add(run)
                yield run


def read_run(folder: str | Path, notes: list[str]) -> list[Observation]:
    """Return an observation a variant of one run; a line that can't be read is named in `notes`."""
    launches: dict[str, list[_Launch]] = {}
    with open(f"{folder}/{RECORDS}", "rb") as file:
        lines = file.read().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            launch = _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            notes.append(f"{folder}/{RECORDS}:{number}: left out: {error}")
            continue
        if launch.counts:
            launches.setdefault(launch.variant, []).append(launch)
    if not launches:
        return []
    system = _system(f"{folder}/{ENVIRONMENT}", notes)
    name = os.path.basename(folder)
    return with_ratios(
        [_observation(variant, found, system, name, launches) for variant, found in launches.items()]
    )


def _observation(
    variant: str, launches: Sequence[_Launch], system: str, run: str, beside: dict[str, list[_Launch]]
) -> Observation:
    first = launches[0]
    fed = "" if first.mode == "synthetic" else f"{variant}-synthetic"
    return Observation(
        when=first.started_at,
        system=system,
        topic=first.workload,
        variant=variant,
        stack=f"torch {first.stack.torch}",
        throughput=statistics.median(launch.samples_per_second for launch in launches),
        run=run,
        launches=len(launches),
        family=_DEVICES.sub("", variant, count=1) if first.strategy == "ddp" else "",
        devices=first.nodes * (first.gpus if first.strategy == "dp" else first.ranks_per_node),
        fed=fed if fed in beside else "",
    )


class _Gpu(msgspec.Struct):
    name: str = ""


class _EnvironmentStack(msgspec.Struct):
    gpus: list[_Gpu] = []


class _Environment(msgspec.Struct):
    stack: _EnvironmentStack = msgspec.field(default_factory=_EnvironmentStack)
    cpu_model: str | None = None


_ENVIRONMENT_DECODER = msgspec.json.Decoder(_Environment)


def _system(path: str, notes: list[str]) -> str:
    """Name the system that a run was made on, without its power limit: which may be what changed."""
    try:
        with open(path, "rb") as file:
            found = _ENVIRONMENT_DECODER.decode(file.read())
    except (OSError, msgspec.MsgspecError) as error:
        notes.append(f"{path}: the system is not known: {error}")
        return "unknown system"
    return _named(tuple(gpu.name for gpu in found.stack.gpus), found.cpu_model)


@functools.cache
def _named(gpus: tuple[str, ...], cpu: str | None) -> str:
    system = system_of({"stack": {"gpus": [{"name": name} for name in gpus]}, "cpu_model": cpu})
    return f"{system.gpus} x {system.gpu}" if system.gpus else str(system.cpu or "unknown system")
