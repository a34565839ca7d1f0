from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from perf.launch.telemetry.amd import Amd, joules, open_amd, power_limit


class AmdSmiException(Exception):
    pass


MI300X = {
    "amdsmi_get_gpu_device_uuid": "70ff74a1-0000-1000-80c4-2d6e2c7d9f15",
    "amdsmi_get_gpu_activity": {"gfx_activity": 98, "umc_activity": 35, "mm_activity": "N/A"},
    "amdsmi_get_power_info": {
        "socket_power": 702,
        "current_socket_power": 702,
        "average_socket_power": "N/A",
        "gfx_voltage": "N/A",
        "power_limit": 750,
    },
    "amdsmi_get_power_cap_info": {"power_cap": 750000000, "default_power_cap": 750000000, "dpm_cap": 0},
    "amdsmi_get_gpu_vram_usage": {"vram_total": 196592, "vram_used": 2048},
    "amdsmi_get_clock_info": {
        "clk": 2092,
        "min_clk": 132,
        "max_clk": 2100,
        "clk_locked": False,
        "clk_deep_sleep": 0,
    },
    "amdsmi_get_energy_count": {
        "energy_accumulator": 1000000,
        "counter_resolution": 15.259,
        "timestamp": 5,
    },
    "amdsmi_get_gpu_asic_info": {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002"},
    "amdsmi_get_violation_status": {
        "acc_counter": 5,
        "active_prochot_thrm": False,
        "active_socket_thrm": True,
        "active_vr_thrm": "N/A",
        "active_ppt_pwr": True,
    },
    "amdsmi_get_gpu_process_list": [{"name": "python", "pid": 4711, "mem": 1}],
    "amdsmi_get_temp_metric": 64,
}
MI250X = {
    **MI300X,
    "amdsmi_get_power_info": {"average_socket_power": 410, "gfx_voltage": 800, "power_limit": 560},
    "amdsmi_get_power_cap_info": {"power_cap": 560},
    "amdsmi_get_clock_info": {"cur_clk": 1700, "max_clk": 1700, "min_clk": 500},
    "amdsmi_get_energy_count": {"power": 2000000, "counter_resolution": 15.3, "timestamp": 5},
}


def library(answers, missing=(), broken=(), cards=2):
    """Return a module that gives recorded answers; `missing` calls are not in it, `broken` ones raise."""

    def answer(name):
        def call(handle, *arguments):
            if name in broken:
                raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported")
            if name == "amdsmi_get_gpu_device_uuid":
                return f"{handle}{answers[name][1:]}"
            return answers[name]

        return call

    calls = {name: answer(name) for name in answers if name not in missing}
    return SimpleNamespace(
        AmdSmiException=AmdSmiException,
        AmdSmiClkType=SimpleNamespace(GFX=0),
        AmdSmiTemperatureType=SimpleNamespace(HOTSPOT=1, EDGE=0),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
        amdsmi_init=lambda: None,
        amdsmi_shut_down=lambda: None,
        amdsmi_get_processor_handles=lambda: list(range(cards)),
        **calls,
    )


def test_a_card_is_read_in_the_units_of_nvidias():
    """Watts stay watts, VRAM in MB becomes bytes, the energy counter becomes joules."""
    gpu = Amd(library(MI300X), [], "1").read()[0]

    assert (1, "AMD Instinct MI300X") == (gpu.index, gpu.name)
    assert (98.0, 702.0, 750.0) == (gpu.utilization_percent, gpu.power_watts, gpu.power_limit_watts)
    assert (2048 * 2**20, 196592 * 2**20) == (gpu.memory_used_bytes, gpu.memory_total_bytes)
    assert (64.0, 2092.0, 2100.0) == (gpu.temperature_celsius, gpu.sm_clock_mhz, gpu.sm_clock_max_mhz)
    assert pytest.approx(15.259) == gpu.energy_joules_total
    assert ["software thermal slowdown", "power cap"] == gpu.event_reasons
    assert gpu.throttle_seconds_total is None
    assert [4711] == gpu.process_ids


def test_an_older_card_is_read_by_the_names_that_its_release_has():
    """MI200 gives an average power, another name of the clock and of the energy counter."""
    gpu = Amd(library(MI250X, missing=("amdsmi_get_violation_status",)), [], "0").read()[0]

    assert (410.0, 560.0, 1700.0) == (gpu.power_watts, gpu.power_limit_watts, gpu.sm_clock_mhz)
    assert pytest.approx(30.6) == gpu.energy_joules_total
    assert gpu.event_reasons is None


@pytest.mark.parametrize("call", [name for name in MI300X if name != "amdsmi_get_gpu_device_uuid"])
def test_what_a_card_does_not_support_is_null_and_named(call):
    """A call that raises costs its own reading only, and is told with the library's words."""
    amd = Amd(library(MI300X, broken=(call,)), [], "0")
    (gpu,) = amd.read()

    assert any("not supported" in why for why in amd.problems.values())
    readings = [
        gpu.utilization_percent,
        gpu.power_watts,
        gpu.power_limit_watts,
        gpu.memory_used_bytes,
        gpu.sm_clock_mhz,
        gpu.energy_joules_total,
        gpu.event_reasons,
        gpu.process_ids,
        gpu.temperature_celsius,
    ]
    assert (0 if call == "amdsmi_get_gpu_asic_info" else 1) == readings.count(None)


def test_not_available_is_null_and_not_zero():
    """amdsmi writes the text N/A where a card has no such sensor."""
    answers = {**MI300X, "amdsmi_get_gpu_activity": {"gfx_activity": "N/A"}}

    assert Amd(library(answers), [], "0").read()[0].utilization_percent is None


@pytest.mark.parametrize(
    ("cap", "watts"), [({"power_cap": 750000000}, 750.0), ({"power_cap": 750}, 750.0), ({}, None)]
)
def test_power_caps_of_all_releases_are_watts(cap, watts):
    """Some releases give microwatts, some watts."""
    assert watts == power_limit(cap)


def test_half_an_energy_counter_is_none():
    """A count without its resolution is no energy."""
    assert joules({"energy_accumulator": 5}) is None
    assert joules(None) is None


def test_a_driver_without_rocms_module_says_so(monkeypatch):
    """The module comes with the site's ROCm and is in no package list of ours."""
    monkeypatch.setitem(sys.modules, "amdsmi", None)

    assert (None, "no amdsmi of a ROCm in the driver's environment (ModuleNotFoundError)") == open_amd(
        [], None
    )


def test_a_rocm_without_driver_says_so(monkeypatch):
    """The library's own words are kept."""

    def refuse():
        raise AmdSmiException("AMDSMI_STATUS_DRIVER_NOT_LOADED")

    module = library(MI300X)
    module.amdsmi_init = refuse
    monkeypatch.setitem(sys.modules, "amdsmi", module)

    assert (None, "amdsmi: AMDSMI_STATUS_DRIVER_NOT_LOADED") == open_amd([], None)
