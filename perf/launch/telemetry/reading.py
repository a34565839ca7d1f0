"""What one look at a node gives, and how it is kept: one JSON object a line. Units are those of the field's name.

A reading that can't be had is None, never 0. Fields that end in ``_total`` are counters that only grow: they mean
something as a difference between two looks.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from perf.whole import whole

TELEMETRY_FILE = "telemetry.jsonl"
"""In the launch's folder, one line a look."""

INTERVAL_SECONDS = 1.0
"""Between two looks. NVML averages power over 1 s on recent cards, so more looks would tell nothing new."""


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one moment.

    `uuid` is as torch writes it: without ``GPU-``. `event_reasons` are the driver's own words for what holds the
    clock down now; `throttle_seconds_total` is how long each of them has done so. `process_ids` are those of the
    driver's PID namespace, which a container does not share. `shared_card` says that the reading is of one part (MIG)
    of a card, whose power, energy and utilization belong to others too and are left out. `reserved_counted` says that
    the memory in use includes what the driver keeps for itself (older drivers), hundreds of MiB on an idle card.
    """

    uuid: str
    index: int
    name: str = ""
    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    temperature_celsius: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    event_reasons: list[str] | None = None
    energy_joules_total: float | None = None
    throttle_seconds_total: dict[str, float] | None = None
    process_ids: list[int] | None = None
    shared_card: bool = False
    reserved_counted: bool = False


@dataclass(frozen=True)
class HostReading:
    """The node and the launch's processes at one moment.

    `cpu_seconds_total` is of the launch's process tree, ended and awaited children included; `busy_seconds_total` of
    all processes on the node; `steal_seconds_total` what a hypervisor gave to others. `pressure_seconds_total` is how
    long some task waited for a CPU, memory or a disk (Linux's PSI). `throttled_seconds_total` is how long the cgroup's
    quota held tasks back. `memory_peak_bytes` is the cgroup's, since it exists.
    """

    processes: int | None = None
    cpu_seconds_total: float | None = None
    pss_bytes: int | None = None
    busy_seconds_total: float | None = None
    steal_seconds_total: float | None = None
    throttled_seconds_total: float | None = None
    pressure_seconds_total: dict[str, float] = field(default_factory=dict)
    memory_used_bytes: int | None = None
    memory_peak_bytes: int | None = None


@dataclass(frozen=True)
class Sample:
    """One look. `time` is Unix time when it began; `why` is ``tick``, ``open`` or ``close``, ``first`` or ``last``."""

    time: float
    why: str
    host: HostReading
    gpus: list[GpuReading] = field(default_factory=list)
    process_ids: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Header:
    """What does not change: who sampled, which limits hold, and what can't be read here and why."""

    host: str
    source: str = ""
    interval_seconds: float = INTERVAL_SECONDS
    cores_allowed: int | None = None
    cpu_quota_cores: float | None = None
    memory_limit_bytes: int | None = None
    memory_total_bytes: int | None = None
    problems: dict[str, str] = field(default_factory=dict)


class GpuSource(Protocol):
    """Where readings of GPUs come from."""

    name: str
    problems: dict[str, str]
    """What can't be read and the library's own word for why; grows while reading."""

    def read(self) -> list[GpuReading]:
        """Return a reading of each card that was chosen."""

    def close(self) -> None:
        """Let go of the library."""


def bare_uuid(text: str) -> str:
    """Return a UUID as torch writes it, without the vendor's ``GPU-`` or ``MIG-``, in small letters."""
    lowered = text.strip().lower()
    for prefix in ("gpu-", "mig-"):
        if lowered.startswith(prefix):
            return lowered[len(prefix) :]
    return lowered


def choose_indices(
    count: int, wanted: Iterable[str | None], visible: str | None, uuids: Mapping[str, int]
) -> list[int]:
    """Return the indices of the cards that a launch may use.

    Parameters
    ----------
    count
        Cards in all, in the library's order, which is the bus's: hence CUDA_DEVICE_ORDER=PCI_BUS_ID for the ranks.
    wanted
        UUIDs that the stack's torch sees; None where this torch can't tell (before 2.4).
    visible
        CUDA_VISIBLE_DEVICES (or HIP's): what torch counts where it gives no UUID.
    uuids
        Index of each UUID that the library knows, as `bare_uuid` writes it.
    """
    asked = list(wanted)
    known = [uuid for uuid in asked if uuid is not None]
    if known and all(bare_uuid(uuid) in uuids for uuid in known):
        return sorted({uuids[bare_uuid(uuid)] for uuid in known})
    if visible is None:
        return list(range(count))
    chosen: list[int] = []
    for word in visible.split(","):
        number = whole(word)
        place = uuids.get(bare_uuid(word), -1) if number is None else number
        if not 0 <= place < count:
            # As CUDA reads it: what follows a word that names no card is not seen.
            break
        chosen.append(place)
    return chosen


def encode(message: Header | Sample) -> str:
    """Return a header or a sample as one line of JSON."""
    return json.dumps(dataclasses.asdict(message), separators=(",", ":"))


def decode(text: str) -> tuple[Header | None, list[Sample]]:
    """Read what a sampler wrote. A line that was cut short when the sampler was killed is left out."""
    header: Header | None = None
    samples: list[Sample] = []
    for line in text.split("\n"):
        try:
            values: dict[str, Any] = json.loads(line)
            if "interval_seconds" in values:
                header = Header(**values)
            else:
                values["host"] = HostReading(**values["host"])
                values["gpus"] = [GpuReading(**gpu) for gpu in values["gpus"]]
                samples.append(Sample(**values))
        except (ValueError, TypeError, KeyError):
            continue
    return header, samples
