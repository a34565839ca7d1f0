"""NVIDIA's GPUs through NVML, by the official nvidia-ml-py. Loads the driver's library; starts nothing on a card.

NVML's units: milliwatts, millijoules, nanoseconds, bytes. A call that a card, a driver or a virtual machine does not
support gives None, and `problems` says which and why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from perf.launch.telemetry.reading import GpuReading, bare_uuid, choose_indices

T = TypeVar("T")

EVENT_REASONS = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clock",
}
"""nvml.h, nvmlClocksEventReason*. The driver's names, in words."""

VIOLATIONS = {0: "power cap", 1: "thermal", 2: "sync boost", 3: "board limit", 5: "reliability"}
"""nvml.h, nvmlPerfPolicyType_t: policies whose violation time is counted, in nanoseconds."""

COUNTED_REASONS = {
    269: "software thermal slowdown",
    270: "hardware thermal slowdown",
    271: "power brake",
}
"""nvml.h, NVML_FI_DEV_CLOCKS_EVENT_REASON_*: counters of event reasons, in nanoseconds; newer drivers only."""

TEMPERATURE_GPU = 0
CLOCK_SM = 1
MEMORY_V2 = 0x2000028
"""nvmlMemory_v2: here `used` leaves out what the driver reserves for itself, so that an idle card has next to none."""


@dataclass
class Card:
    """One card, or one MIG part of a card: then `whole` is the card that holds it."""

    index: int
    uuid: str
    handle: Any
    whole: Any = None
    name: str = ""
    clock_max: float | None = None
    lacks: set[str] = field(default_factory=set)
    """Calls that this card does not support: not asked again, since each costs a call into the driver."""

    @property
    def card(self) -> Any:
        """The handle of the physical card: clocks, temperature and throttling are the same for all its parts."""
        return self.handle if self.whole is None else self.whole


class Nvml:
    """Reads the chosen cards.

    Parameters
    ----------
    library
        The module `pynvml`.
    wanted
        UUIDs that the stack's torch sees; None where it can't tell.
    visible
        CUDA_VISIBLE_DEVICES of the launch.
    """

    name = "nvml"

    def __init__(self, library: Any, wanted: Sequence[str | None], visible: str | None) -> None:
        self._nvml = library
        self.problems: dict[str, str] = {}
        library.nvmlInit()
        try:
            self.cards = self._find(wanted, visible)
        except library.NVMLError:
            library.nvmlShutdown()
            raise

    def read(self) -> list[GpuReading]:
        """Return a reading of each chosen card."""
        return [self._read(card) for card in self.cards]

    def close(self) -> None:
        """Let go of the driver's library."""
        self._nvml.nvmlShutdown()

    def _find(self, wanted: Sequence[str | None], visible: str | None) -> list[Card]:
        n = self._nvml
        whole = []
        for index in range(n.nvmlDeviceGetCount()):
            handle = n.nvmlDeviceGetHandleByIndex(index)
            whole.append(Card(index, bare_uuid(_text(n.nvmlDeviceGetUUID(handle))), handle))
        parts = [part for card in whole for part in self._parts_of(card)]
        known = {bare_uuid(uuid) for uuid in wanted if uuid}
        chosen = [part for part in parts if part.uuid in known]
        if not chosen:
            uuids = {card.uuid: card.index for card in whole}
            chosen = [whole[i] for i in choose_indices(len(whole), wanted, visible, uuids)]
        for card in chosen:
            card.name = _text(self._ask(card, "nvmlDeviceGetName", card.card) or "")
            card.clock_max = self._ask(card, "nvmlDeviceGetMaxClockInfo", card.card, CLOCK_SM)
        return chosen

    def _parts_of(self, card: Card) -> list[Card]:
        """Return the MIG parts of a card; none where it is not divided."""
        n, parts = self._nvml, []
        try:
            current, _ = n.nvmlDeviceGetMigMode(card.handle)
            places = n.nvmlDeviceGetMaxMigDeviceCount(card.handle) if current else 0
        except n.NVMLError:
            return []
        for place in range(places):
            try:
                handle = n.nvmlDeviceGetMigDeviceHandleByIndex(card.handle, place)
                uuid = bare_uuid(_text(n.nvmlDeviceGetUUID(handle)))
            except n.NVMLError:
                continue
            parts.append(Card(card.index, uuid, handle, whole=card.handle))
        return parts

    def _read(self, card: Card) -> GpuReading:
        part = card.whole is not None
        used, total, reserved = self._memory(card)
        mine: dict[str, Any] = {}
        if not part:
            use = self._ask(card, "nvmlDeviceGetUtilizationRates", card.handle)
            mine = {
                "utilization_percent": None if use is None else float(use.gpu),
                "power_watts": _scaled(self._ask(card, "nvmlDeviceGetPowerUsage", card.handle), 1e-3),
                "power_limit_watts": _scaled(
                    self._ask(card, "nvmlDeviceGetEnforcedPowerLimit", card.handle), 1e-3
                ),
                "energy_joules_total": _scaled(
                    self._ask(card, "nvmlDeviceGetTotalEnergyConsumption", card.handle), 1e-3
                ),
            }
        processes = self._ask(card, "nvmlDeviceGetComputeRunningProcesses", card.handle)
        return GpuReading(
            uuid=card.uuid,
            index=card.index,
            name=card.name,
            memory_used_bytes=used,
            memory_total_bytes=total,
            temperature_celsius=_scaled(
                self._ask(card, "nvmlDeviceGetTemperature", card.card, TEMPERATURE_GPU), 1.0
            ),
            sm_clock_mhz=_scaled(self._ask(card, "nvmlDeviceGetClockInfo", card.card, CLOCK_SM), 1.0),
            sm_clock_max_mhz=_scaled(card.clock_max, 1.0),
            event_reasons=self._event_reasons(card),
            throttle_seconds_total=self._throttled(card),
            process_ids=None if processes is None else [int(process.pid) for process in processes],
            shared_card=part,
            reserved_counted=reserved,
            **mine,
        )

    def _memory(self, card: Card) -> tuple[int | None, int | None, bool]:
        """Return bytes in use and in all, and whether the first counts what the driver reserves for itself."""
        found = self._ask(
            card, "nvmlDeviceGetMemoryInfo", card.handle, MEMORY_V2, label="memory without reserved"
        )
        reserved = found is None
        if reserved:
            found = self._ask(card, "nvmlDeviceGetMemoryInfo", card.handle)
        return (None, None, False) if found is None else (int(found.used), int(found.total), reserved)

    def _event_reasons(self, card: Card) -> list[str] | None:
        bits = self._ask(card, "nvmlDeviceGetCurrentClocksEventReasons", card.card)
        if bits is None:
            # Its name before driver 535.
            bits = self._ask(card, "nvmlDeviceGetCurrentClocksThrottleReasons", card.card)
        if bits is None:
            return None
        known = [word for bit, word in EVENT_REASONS.items() if bits & bit]
        rest = bits & ~sum(EVENT_REASONS)
        return [*known, f"reason {rest:#x}"] if rest else known

    def _throttled(self, card: Card) -> dict[str, float] | None:
        found: dict[str, float] = {}
        for policy, word in VIOLATIONS.items():
            status = self._ask(
                card, "nvmlDeviceGetViolationStatus", card.card, policy, label=f"violation time: {word}"
            )
            if status is not None:
                found[word] = status.violationTime * 1e-9
        fields = self._ask(card, "nvmlDeviceGetFieldValues", card.card, list(COUNTED_REASONS))
        for value in fields or ():
            if value.nvmlReturn == 0 and value.fieldId in COUNTED_REASONS:
                found[COUNTED_REASONS[value.fieldId]] = value.value.ullVal * 1e-9
        return found or None

    def _ask(self, card: Card, call: str, *arguments: Any, label: str = "") -> Any:
        """Call NVML; None where it has no answer. What is not supported is not asked for again."""
        what = label or call.removeprefix("nvmlDeviceGet")
        if what in card.lacks:
            return None
        ask: Callable[..., Any] = getattr(self._nvml, call)
        try:
            return ask(*arguments)
        except self._nvml.NVMLError as error:
            self.problems[what] = str(error)
            if isinstance(error, (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound)):
                card.lacks.add(what)
            return None


def open_nvml(wanted: Sequence[str | None], visible: str | None) -> tuple[Nvml | None, str]:
    """Return NVML's cards, or None and why there are none: no module, no driver, no permission."""
    try:
        import pynvml
    except ImportError:
        return None, "nvidia-ml-py is not installed in the driver's environment"
    try:
        return Nvml(pynvml, wanted, visible), ""
    except pynvml.NVMLError as error:
        return None, f"NVML: {error}"


def _text(value: str | bytes) -> str:
    """Return what older releases of nvidia-ml-py give as bytes."""
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else float(value) * factor
