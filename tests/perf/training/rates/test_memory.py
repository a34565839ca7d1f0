from __future__ import annotations

import pytest
import torch

from perf.training.rates.memory import device_copy, peer_copy, transfers
from perf.training.rates.timing import Timer

CPU = torch.device("cpu")


@pytest.fixture
def one_second(monkeypatch):
    """Every call of a work takes a second, so that a rate is the amount that it counts."""
    monkeypatch.setattr(Timer, "repeat", lambda self, work: [work() is None or 1.0])
    return Timer(lambda: None, 1.0)


def test_a_copy_within_memory_counts_what_is_read_and_what_is_written(one_second):
    """Twice the size, as STREAM counts it."""
    name, rate = device_copy(CPU, one_second, 4096)

    assert ("memory_copy", 8192.0, 4096) == (name, rate.value, rate.about["bytes"])


def test_a_copy_between_devices_counts_what_passes_the_link(one_second):
    """Once the size; between devices that are no GPUs nobody knows of peer access."""
    name, rate = peer_copy(CPU, CPU, one_second, 4096)

    assert ("peer_copy", 4096.0, None) == (name, rate.value, rate.about["peer_access"])


def test_both_directions_are_measured_from_both_kinds_of_host_memory(one_second, monkeypatch):
    """Pinned and pageable, to the device and back; here the device is the host, which pins nothing."""
    ones = torch.ones
    asked = []

    def unpinned(*size, pin_memory=False, **rest):
        asked.append(pin_memory)
        return ones(*size, **rest)

    monkeypatch.setattr(torch, "ones", unpinned)
    found = dict(transfers(CPU, one_second, 4096))

    assert [
        "host_to_device_pinned",
        "device_to_host_pinned",
        "host_to_device_pageable",
        "device_to_host_pageable",
    ] == list(found)
    assert [False, True, False] == asked
    assert {4096.0} == {rate.value for rate in found.values()}
