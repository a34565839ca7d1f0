from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from perf.launch.power import power_limits_watts


class NVMLError(Exception):
    """The library's own error."""


@pytest.fixture
def nvml(monkeypatch):
    """A library that knows two cards, of which one has no limit."""

    def limit(handle):
        if handle == "GPU-b":
            raise NVMLError
        return 700_000

    calls = []
    fake = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: calls.append("init"),
        nvmlShutdown=lambda: calls.append("shutdown"),
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetEnforcedPowerLimit=limit,
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return calls


def test_limits_are_in_watts_and_null_where_a_card_has_none(nvml):
    """NVML counts milliwatts, and its UUIDs have a prefix that torch's lack."""
    assert [700.0, None, 700.0] == power_limits_watts([{"uuid": "a"}, {"uuid": "b"}, {"uuid": "GPU-c"}])
    assert ["init", "shutdown"] == nvml


def test_without_gpus_nobody_is_asked(nvml):
    """A machine without GPUs needs no NVML."""
    assert [] == power_limits_watts([])
    assert [] == nvml


def test_without_a_driver_limits_are_unknown(nvml, monkeypatch):
    """No library, no driver, another vendor's cards: null, and no error."""

    def fail():
        raise NVMLError("Driver Not Loaded")

    monkeypatch.setattr(sys.modules["pynvml"], "nvmlInit", fail)
    assert [None] == power_limits_watts([{"uuid": "a"}])
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert [None] == power_limits_watts([{"uuid": "a"}])
