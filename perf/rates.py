"""Component rates of a machine: which ones a launch of each kind gives. What each is: ``docs/rates.md``."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from perf.catalogue import Member, marks, members

MATMUL = "matmul_{precision}"
ALL_REDUCE = "all_reduce_{workload}"
HOST_TO_DEVICE = "host_to_device_pinned"
KERNEL_LAUNCHES = "kernel_launches"
PYTHON_LOOP = "python_loop"

_HOST_AND_FILES = (PYTHON_LOOP, KERNEL_LAUNCHES, "file_read", "file_read_cached", "checkpoint_write")
_REDUCED = tuple(
    ALL_REDUCE.format(workload=name) for name in ("mnist_cnn", "resnet50", "resnet152", "unet3d")
)

RATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("single", "cpu"): ("matmul_fp32", "matmul_bf16", "memory_copy", *_HOST_AND_FILES),
    ("single", "cuda"): (
        "matmul_fp32",
        "matmul_tf32",
        "matmul_fp16",
        "matmul_bf16",
        "memory_copy",
        "host_to_device_pinned",
        "device_to_host_pinned",
        "host_to_device_pageable",
        "device_to_host_pageable",
        "kernel_round_trips",
        *_HOST_AND_FILES,
    ),
    ("ddp", "cpu"): _REDUCED,
    ("ddp", "cuda"): (*_REDUCED, "peer_copy"),
}
"""Names by strategy and kind of device: one rank alone measures its own, the ranks of DDP what lies between them."""


def rates_of(member: Member) -> tuple[str, ...]:
    """Return the names of the rates that a member's launches give."""
    return RATES[member.variant.strategy, member.variant.device]


def cards() -> list[Any]:
    """Return pytest params of the members that measure rates; their id is their group's name."""
    return [pytest.param(m, id=m.group, marks=marks([m])) for m in members(plan=("rates",))]


def each_rate() -> list[Any]:
    """Return pytest params of a member and each of its rates; their id begins with the member's group.

    Not in profile ``smoke``, whose ranks have one thread and share the node with another group.
    """
    return [
        pytest.param(dataclasses.replace(m, smoke=False), name, id=f"{m.group}-{name}", marks=marks([m]))
        for m in members(plan=("rates",))
        for name in rates_of(m)
    ]
