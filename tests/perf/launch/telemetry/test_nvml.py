from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from perf.launch.telemetry.nvml import COUNTED_REASONS, EVENT_REASONS, MEMORY_V2, VIOLATIONS, Nvml, open_nvml

_SPEC = importlib.util.spec_from_file_location("fake_pynvml", Path(__file__).with_name("fake_pynvml.py"))
fake = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fake)

BARE = [uuid.removeprefix("GPU-") for uuid in fake.UUIDS]


def test_a_card_is_read_in_plain_units():
    """Milliwatts, millijoules and nanoseconds become watts, joules and seconds."""
    nvml = Nvml(fake.FakeNvml(), [BARE[0]], None)
    (gpu,) = nvml.read()

    assert (BARE[0], 0, "NVIDIA H100 80GB HBM3") == (gpu.uuid, gpu.index, gpu.name)
    assert pytest.approx(612.345) == gpu.power_watts
    assert 700.0 == gpu.power_limit_watts
    assert 5600.0 == gpu.energy_joules_total
    assert (97.0, 61.0, 1755.0, 1980.0) == (
        gpu.utilization_percent,
        gpu.temperature_celsius,
        gpu.sm_clock_mhz,
        gpu.sm_clock_max_mhz,
    )
    assert (4 * 2**30, 80 * 2**30, False) == (
        gpu.memory_used_bytes,
        gpu.memory_total_bytes,
        gpu.reserved_counted,
    )
    assert ["power cap"] == gpu.event_reasons
    assert [4711] == gpu.process_ids
    assert 0.5 == gpu.throttle_seconds_total["thermal"]
    assert 1.5 == gpu.throttle_seconds_total["hardware thermal slowdown"]
    assert "power brake" not in gpu.throttle_seconds_total
    assert {} == nvml.problems


READ_BY = {
    "nvmlDeviceGetUtilizationRates": "utilization_percent",
    "nvmlDeviceGetPowerUsage": "power_watts",
    "nvmlDeviceGetEnforcedPowerLimit": "power_limit_watts",
    "nvmlDeviceGetTotalEnergyConsumption": "energy_joules_total",
    "nvmlDeviceGetTemperature": "temperature_celsius",
    "nvmlDeviceGetClockInfo": "sm_clock_mhz",
    "nvmlDeviceGetMaxClockInfo": "sm_clock_max_mhz",
    "nvmlDeviceGetMemoryInfo": "memory_used_bytes",
    "nvmlDeviceGetComputeRunningProcesses": "process_ids",
}


@pytest.mark.parametrize(("call", "field"), READ_BY.items())
def test_what_a_card_does_not_support_is_null_and_named(call, field):
    """One missing reading is None, never 0, says why, and costs no other."""
    nvml = Nvml(fake.FakeNvml({call: fake.NVMLError_NotSupported}), [BARE[0]], None)
    (gpu,) = nvml.read()

    assert getattr(gpu, field) is None
    assert any("Not Supported" in why for why in nvml.problems.values())
    others = [getattr(gpu, other) for other in READ_BY.values() if other != field]
    assert None not in others


def test_what_is_not_supported_is_asked_for_once():
    """A call that a card does not know is not made again in each look."""
    library = fake.FakeNvml({"nvmlDeviceGetPowerUsage": fake.NVMLError_NotSupported})
    nvml = Nvml(library, [BARE[0]], None)
    nvml.read()
    nvml.read()

    assert 1 == library.calls.count("nvmlDeviceGetPowerUsage")
    assert 2 == library.calls.count("nvmlDeviceGetUtilizationRates")


def test_an_error_that_passes_is_asked_again():
    """A card that is lost for a moment is read again."""
    library = fake.FakeNvml({"nvmlDeviceGetPowerUsage": fake.NVMLError})
    nvml = Nvml(library, [BARE[0]], None)
    assert nvml.read()[0].power_watts is None
    library.broken = {}

    assert pytest.approx(612.345) == nvml.read()[0].power_watts


def test_older_drivers_are_read_by_older_calls():
    """Before driver 535 event reasons had another name, and older ones still count reserved memory as in use."""
    library = fake.FakeNvml({"nvmlDeviceGetCurrentClocksEventReasons": fake.NVMLError_FunctionNotFound})
    assert ["power cap"] == Nvml(library, [BARE[0]], None).read()[0].event_reasons

    class Older(fake.FakeNvml):
        def nvmlDeviceGetMemoryInfo(self, handle, version=None):
            if version is not None:
                raise fake.NVMLError_FunctionNotFound
            return super().nvmlDeviceGetMemoryInfo(handle)

    (gpu,) = Nvml(Older(), [BARE[0]], None).read()
    assert (5 * 2**30, True) == (gpu.memory_used_bytes, gpu.reserved_counted)


def test_without_any_counter_throttling_is_unknown():
    """No violation time and no counted reason is null, not a card that was never slowed down."""
    broken = {
        "nvmlDeviceGetViolationStatus": fake.NVMLError_NotSupported,
        "nvmlDeviceGetFieldValues": fake.NVMLError_NotSupported,
        "nvmlDeviceGetCurrentClocksEventReasons": fake.NVMLError_NotSupported,
        "nvmlDeviceGetCurrentClocksThrottleReasons": fake.NVMLError_NotSupported,
    }
    (gpu,) = Nvml(fake.FakeNvml(broken), [BARE[0]], None).read()

    assert (None, None) == (gpu.throttle_seconds_total, gpu.event_reasons)


def test_several_and_unknown_reasons_are_all_told():
    """A bit that this suite does not know yet is shown as a number."""
    (gpu,) = Nvml(fake.FakeNvml(reasons=0x8 | 0x40 | 0x4000), [BARE[0]], None).read()

    assert ["hardware slowdown", "hardware thermal slowdown", "reason 0x4000"] == gpu.event_reasons


@pytest.mark.parametrize(
    ("wanted", "visible", "indices"),
    [
        ([BARE[1]], None, [1]),
        ([BARE[1].upper()], "0", [1]),
        ([None], "1", [1]),
        ([None, None], "1,0", [1, 0]),
        ([None], fake.UUIDS[1], [1]),
        ([], None, [0, 1]),
        ([], "", []),
        ([], "0,7,1", [0]),
    ],
)
def test_the_launchs_own_cards_are_read(wanted, visible, indices):
    """By UUID where torch gives one; else as CUDA_VISIBLE_DEVICES says, in the order of the bus."""
    assert indices == [gpu.index for gpu in Nvml(fake.FakeNvml(), wanted, visible).read()]


def test_a_part_of_a_card_has_its_own_memory_and_nobody_elses_power():
    """MIG: energy, power and utilization of the card belong to all parts, clocks and throttling hold for each."""
    nvml = Nvml(fake.FakeNvml(mig=True), [fake.PART.removeprefix("MIG-")], None)
    (gpu,) = nvml.read()

    assert (True, 0) == (gpu.shared_card, gpu.index)
    assert (None, None, None) == (gpu.utilization_percent, gpu.power_watts, gpu.energy_joules_total)
    assert (4 * 2**30, 1755.0) == (gpu.memory_used_bytes, gpu.sm_clock_mhz)
    assert 0.5 == gpu.throttle_seconds_total["thermal"]


def test_the_library_is_let_go_of_also_when_no_card_can_be_had():
    """What was begun is ended."""
    library = fake.FakeNvml({"nvmlDeviceGetCount": fake.NVMLError})
    with pytest.raises(fake.NVMLError):
        Nvml(library, [], None)
    assert 0 == library.open


@pytest.mark.parametrize("error", [fake.NVMLError_LibraryNotFound, fake.NVMLError_DriverNotLoaded])
def test_a_node_without_driver_says_so(monkeypatch, error):
    """No library and no loaded driver are told in NVML's own words."""
    monkeypatch.setitem(sys.modules, "pynvml", fake.FakeNvml({"nvmlInit": error}))

    assert (None, f"NVML: {error.words}") == open_nvml([], None)


def test_a_driver_without_the_module_says_so(monkeypatch):
    """nvidia-ml-py may be missing from an environment of one's own."""
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert (None, "nvidia-ml-py is not installed in the driver's environment") == open_nvml([], None)


def test_the_numbers_are_those_of_the_official_module():
    """Bits, policies and fields written here are the constants of nvidia-ml-py."""
    pynvml = pytest.importorskip("pynvml")
    assert isinstance(pynvml, ModuleType)
    bits = {
        "GpuIdle": "idle",
        "ApplicationsClocksSetting": "application clocks",
        "SwPowerCap": "power cap",
        "HwSlowdown": "hardware slowdown",
        "SyncBoost": "sync boost",
        "SwThermalSlowdown": "software thermal slowdown",
        "HwThermalSlowdown": "hardware thermal slowdown",
        "HwPowerBrakeSlowdown": "power brake",
        "DisplayClockSetting": "display clock",
    }
    assert EVENT_REASONS == {getattr(pynvml, f"nvmlClocksEventReason{n}"): word for n, word in bits.items()}
    fields = {"SW_THERM": "software", "HW_THERM": "hardware"}
    for name, word in fields.items():
        number = getattr(pynvml, f"NVML_FI_DEV_CLOCKS_EVENT_REASON_{name}_SLOWDOWN")
        assert f"{word} thermal slowdown" == COUNTED_REASONS[number]
    assert "power brake" == COUNTED_REASONS[pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN]
    assert "thermal" == VIOLATIONS[pynvml.NVML_PERF_POLICY_THERMAL]
    assert "power cap" == VIOLATIONS[pynvml.NVML_PERF_POLICY_POWER]
    assert pynvml.nvmlMemory_v2 == MEMORY_V2
    assert pynvml.NVML_CLOCK_SM == 1
    assert pynvml.NVML_TEMPERATURE_GPU == 0
