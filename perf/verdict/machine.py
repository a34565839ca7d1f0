"""Component rates of a machine: which ones a launch of each kind gives. What each is: ``docs/rates.md``. Pure."""

from __future__ import annotations

__all__ = ["RATES", "RATE_UNITS"]

_HOST_AND_FILES = ("python_loop", "kernel_launches", "file_read", "file_read_cached", "checkpoint_write")
_REDUCED = tuple(f"all_reduce_{workload}" for workload in ("mnist_cnn", "resnet50", "resnet152", "unet3d"))

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

_FREQUENCIES = ("python_loop", "kernel_launches", "kernel_round_trips")

RATE_UNITS = {
    name: "FLOP/s" if name.startswith("matmul_") else "1/s" if name in _FREQUENCIES else "B/s"
    for names in RATES.values()
    for name in names
}
"""The unit of every rate, by its name."""
