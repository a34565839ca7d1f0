from __future__ import annotations

import pytest
import torch

from perf.training.rates import matrix
from perf.training.rates.matrix import check_in_force, matrix_products, why_not
from perf.training.rates.timing import Timer
from perf.training.settings import TF32_ERROR, NotInForce

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)


def test_products_are_measured_in_every_precision_of_the_device():
    """On a CPU float32 and bfloat16, with the side and the type that were really multiplied."""
    found = dict(matrix_products(CPU, Timer(lambda: None, 0.01), 64))

    assert {"matmul_fp32": "float32", "matmul_bf16": "bfloat16"} == {
        name: rate.about["dtype"] for name, rate in found.items()
    }
    assert all(rate.unit == "FLOP/s" and rate.value and rate.about["side"] == 64 for rate in found.values())


def test_a_product_is_two_operations_for_each_of_its_terms(monkeypatch):
    """One multiplication and one addition: 2 n^3."""
    monkeypatch.setattr(Timer, "repeat", lambda self, work: [work() or 1.0])

    assert 2.0 * 16**3 == dict(matrix_products(CPU, Timer(lambda: None, 1.0), 16))["matmul_fp32"].value


@pytest.mark.parametrize(
    ("precision", "error", "word"),
    [("fp32", 3e-4, "NVIDIA_TF32_OVERRIDE and"), ("tf32", 3e-7, "NVIDIA_TF32_OVERRIDE=0")],
)
def test_a_precision_that_is_not_in_force_is_an_error(precision, error, word):
    """The rate of another precision would stand under its name."""
    with pytest.raises(NotInForce, match=word):
        check_in_force(precision, error)


@pytest.mark.parametrize(("precision", "error"), [("fp32", TF32_ERROR / 10), ("tf32", TF32_ERROR * 10)])
def test_a_precision_in_force_is_measured(precision, error):
    """Float32 is exact to 3e-7, TF32 to 3e-4."""
    check_in_force(precision, error)


def test_a_gpu_without_a_precision_has_none_and_says_why(monkeypatch):
    """A V100 has neither TF32 nor bfloat16; it has float16 and float32."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 0))

    assert ["", "7.0 has no tf32", "", "7.0 has no bf16"] == [
        why_not(precision, GPU)[len("compute capability ") :].partition(";")[0]
        for precision in matrix.PRECISIONS["cuda"]
    ]


def test_an_h100_has_all_precisions(monkeypatch):
    """Compute capability 9.0."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))

    assert [""] * 4 == [why_not(precision, GPU) for precision in matrix.PRECISIONS["cuda"]]
