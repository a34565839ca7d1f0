"""AMD's GPUs through amdsmi, the module that comes with the site's ROCm (it must match that ROCm's own library).

amdsmi's units: watts, degrees, MHz, MB of VRAM, energy in steps of `counter_resolution` microjoules. What a card does
not have is the text ``N/A`` or an exception; both are None here, never 0. Which keys a reading has changed between
releases, so each is looked for under all its names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perf.launch.telemetry.reading import GpuReading, bare_uuid, choose_indices

MEGABYTE = 2**20
"""amdsmi divides bytes by 1024 twice."""

POWER_KEYS = ("current_socket_power", "average_socket_power", "socket_power")
"""Watts: the first on MI300 and later, the second before, the third in newer releases for both."""

ACTIVE_WORDS = {
    "active_prochot_thrm": "hardware thermal slowdown",
    "active_socket_thrm": "software thermal slowdown",
    "active_vr_thrm": "voltage regulator thermal slowdown",
    "active_hbm_thrm": "memory thermal slowdown",
    "active_ppt_pwr": "power cap",
}
"""amdsmi_get_violation_status, since ROCm 6.3. Its counters have no unit of time, so no seconds are made of them."""


class Amd:
    """Reads the chosen cards.

    Parameters
    ----------
    library
        The module `amdsmi`.
    wanted
        UUIDs that the stack's torch sees. HIP's differ from amdsmi's on most releases; `visible` then decides.
    visible
        HIP_VISIBLE_DEVICES (or ROCR's, or CUDA's) of the launch.
    """

    name = "amdsmi"

    def __init__(self, library: Any, wanted: Sequence[str | None], visible: str | None) -> None:
        self._smi = library
        self.problems: dict[str, str] = {}
        self._lacks: set[str] = set()
        library.amdsmi_init()
        try:
            handles = list(library.amdsmi_get_processor_handles())
            uuids = [bare_uuid(str(self._ask("amdsmi_get_gpu_device_uuid", h) or "")) for h in handles]
        except library.AmdSmiException:
            library.amdsmi_shut_down()
            raise
        known = {uuid: index for index, uuid in enumerate(uuids) if uuid}
        chosen = choose_indices(len(handles), wanted, visible, known)
        self.cards = [(index, uuids[index], handles[index]) for index in chosen]

    def read(self) -> list[GpuReading]:
        """Return a reading of each chosen card."""
        return [self._read(*card) for card in self.cards]

    def close(self) -> None:
        """Let go of the library."""
        self._smi.amdsmi_shut_down()

    def _read(self, index: int, uuid: str, handle: Any) -> GpuReading:
        smi = self._smi
        power = self._ask("amdsmi_get_power_info", handle)
        memory = self._ask("amdsmi_get_gpu_vram_usage", handle)
        clock = self._ask("amdsmi_get_clock_info", handle, smi.AmdSmiClkType.GFX)
        energy = self._ask("amdsmi_get_energy_count", handle)
        board = self._ask("amdsmi_get_gpu_asic_info", handle)
        processes = self._ask("amdsmi_get_gpu_process_list", handle)
        return GpuReading(
            uuid=uuid,
            index=index,
            name=str((board or {}).get("market_name", "")),
            utilization_percent=number(self._ask("amdsmi_get_gpu_activity", handle), "gfx_activity"),
            memory_used_bytes=whole(number(memory, "vram_used"), MEGABYTE),
            memory_total_bytes=whole(number(memory, "vram_total"), MEGABYTE),
            power_watts=number(power, *POWER_KEYS),
            power_limit_watts=power_limit(self._ask("amdsmi_get_power_cap_info", handle)),
            temperature_celsius=self._temperature(handle),
            sm_clock_mhz=number(clock, "clk", "cur_clk"),
            sm_clock_max_mhz=number(clock, "max_clk"),
            event_reasons=active(self._ask("amdsmi_get_violation_status", handle)),
            energy_joules_total=joules(energy),
            process_ids=pids(processes),
        )

    def _temperature(self, handle: Any) -> float | None:
        smi = self._smi
        # Edge is absent on MI300; the hot spot is there on all.
        for kind in ("HOTSPOT", "EDGE"):
            sensor = getattr(smi.AmdSmiTemperatureType, kind)
            found = self._ask(
                "amdsmi_get_temp_metric",
                handle,
                sensor,
                smi.AmdSmiTemperatureMetric.CURRENT,
                label=kind.lower(),
            )
            if isinstance(found, (int, float)):
                return float(found)
        return None

    def _ask(self, call: str, *arguments: Any, label: str = "") -> Any:
        what = f"{call.removeprefix('amdsmi_get_')}{f' {label}' if label else ''}"
        ask = getattr(self._smi, call, None)
        if ask is None or what in self._lacks:
            self.problems.setdefault(what, "this release of amdsmi has no such call")
            return None
        try:
            return ask(*arguments)
        except self._smi.AmdSmiException as error:
            self.problems[what] = str(error)
            self._lacks.add(what)
            return None


def open_amd(wanted: Sequence[str | None], visible: str | None) -> tuple[Amd | None, str]:
    """Return amdsmi's cards, or None and why there are none."""
    try:
        import amdsmi
    except (ImportError, OSError, KeyError) as error:
        # Its wrapper loads the library when it is imported, and looks for ROCm's folder in the environment.
        return None, f"no amdsmi of a ROCm in the driver's environment ({type(error).__name__})"
    try:
        return Amd(amdsmi, wanted, visible), ""
    except amdsmi.AmdSmiException as error:
        return None, f"amdsmi: {error}"


def number(values: Mapping[str, Any] | None, *keys: str) -> float | None:
    """Return the first of `keys` that holds a number; None for ``N/A`` and for what is not there."""
    for key in keys:
        found = (values or {}).get(key)
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return float(found)
    return None


def whole(value: float | None, factor: int) -> int | None:
    """Return a number of bytes."""
    return None if value is None else round(value * factor)


def joules(energy: Mapping[str, Any] | None) -> float | None:
    """Return the energy counter in joules: accumulator (older: ``power``) times resolution is microjoules."""
    count = number(energy, "energy_accumulator", "power")
    step = number(energy, "counter_resolution")
    return None if count is None or step is None else count * step * 1e-6


def power_limit(cap: Mapping[str, Any] | None) -> float | None:
    """Return the power cap in watts. Releases differ: some give microwatts, which no card's watts come near."""
    found = number(cap, "power_cap")
    if found is None:
        return None
    return found * 1e-6 if found > 1e5 else found


def active(status: Mapping[str, Any] | None) -> list[str] | None:
    """Return what holds the clock down now; None where the release or the card does not say."""
    if status is None or not any(isinstance(status.get(key), (bool, int)) for key in ACTIVE_WORDS):
        return None
    return [word for key, word in ACTIVE_WORDS.items() if status.get(key) in (True, 1)]


def pids(processes: Sequence[Any] | None) -> list[int] | None:
    """Return the processes on a card."""
    if processes is None:
        return None
    found = [process.get("pid") for process in processes if isinstance(process, Mapping)]
    return [int(pid) for pid in found if isinstance(pid, int)]
