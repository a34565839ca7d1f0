"""Matrix products: what the arithmetic units give, in each precision that training uses."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from perf.contract import Rate
from perf.training.rates.timing import Timer, missing, rate
from perf.training.settings import TF32_ERROR, NotInForce, apply_precision, product_errors

PRECISIONS = {"cuda": ("fp32", "tf32", "fp16", "bf16"), "cpu": ("fp32", "bf16")}
"""What is measured on each kind of device. A CPU has no TF32, and its float16 is for storage."""

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

UNIT = "FLOP/s"

AMPERE = (8, 0)
"""The first compute capability with TF32 and bfloat16 (NVIDIA's CUDA programming guide)."""


def matrix_products(device: torch.device, timer: Timer, side: int) -> Iterator[tuple[str, Rate]]:
    """Yield the rate of the product of two square matrices of `side`, ``2 * side**3`` FLOP, in each precision.

    The factors are normally distributed: a GPU draws less power, and so clocks higher, where they are zero.
    The products' results lie in memory that is there already.

    Raises
    ------
    NotInForce
        If float32 is rounded to TF32 although it was switched off, or is not although this GPU can.
    """
    for precision in PRECISIONS[device.type]:
        name = f"matmul_{precision}"
        reason = why_not(precision, device)
        if reason:
            yield name, missing(UNIT, reason)
            continue
        if TYPES[precision] is torch.float32:
            apply_precision(precision)
            check_in_force(precision, product_errors(device)["matmul"])
        generator = torch.Generator(device=device).manual_seed(0)
        a, b = (
            torch.randn(side, side, generator=generator, device=device).to(TYPES[precision]) for _ in range(2)
        )
        c = torch.empty_like(a)

        def product(a: torch.Tensor = a, b: torch.Tensor = b, c: torch.Tensor = c) -> None:
            torch.mm(a, b, out=c)

        seconds = timer.repeat(product)
        yield name, rate(2.0 * side**3, UNIT, seconds, side=side, dtype=str(a.dtype).replace("torch.", ""))
    apply_precision("fp32")


def why_not(precision: str, device: torch.device) -> str:
    """Return why a device has no such precision; '' if it has. ROCm's GPUs are left to say so themselves."""
    if device.type != "cuda" or torch.version.hip or precision not in ("tf32", "bf16"):
        return ""
    capability = torch.cuda.get_device_capability(device)
    if capability >= AMPERE:
        return ""
    return f"compute capability {capability[0]}.{capability[1]} has no {precision}; 8.0 is the first that has"


def check_in_force(precision: str, error: float) -> None:
    """Raise NotInForce where a float32 product is not as exact as `precision` says."""
    if torch.version.hip:
        # AMD's cards before MI300 have no such rounding, and behave as float32 when it is asked for.
        return
    if precision == "fp32" and error > TF32_ERROR:
        raise NotInForce(
            f"the rate of float32 was asked for, but a product has the relative error {error:.1e} of TF32; look for "
            f"NVIDIA_TF32_OVERRIDE and TORCH_ALLOW_TF32_CUBLAS_OVERRIDE in the environment"
        )
    if precision == "tf32" and error <= TF32_ERROR:
        raise NotInForce(
            f"the rate of TF32 was asked for, but a product is exact to {error:.1e}; look for NVIDIA_TF32_OVERRIDE=0 "
            f"in the environment"
        )
