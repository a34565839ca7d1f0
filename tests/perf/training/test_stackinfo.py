"""What the stack consists of, as its own process sees it."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy
import pytest
import torch
import torchvision

from perf.training.stackinfo import nccl_version, stack_info


def test_versions_are_those_of_this_process():
    """Each part is named with the version that was imported, and torch with where it came from."""
    facts = stack_info()

    assert (
        platform.python_version(),
        torch.__version__,
        torchvision.__version__,
        numpy.__version__,
    ) == tuple(facts[part] for part in ("python", "torch", "torchvision", "numpy"))
    assert Path(torch.__file__).parent == Path(facts["torch_path"])
    assert facts["cuda"] == torch.version.cuda
    assert facts["gloo"] is torch.distributed.is_gloo_available()


def test_facts_can_be_recorded():
    """Everything is plain JSON, with null for what is absent."""
    facts = stack_info()

    assert facts == json.loads(json.dumps(facts, allow_nan=False))
    assert {"hip", "cudnn", "nccl"} <= set(facts)


def test_a_stack_without_nccl_has_none(monkeypatch):
    """Absent is null."""
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)

    assert nccl_version() is None


@pytest.mark.parametrize(
    ("version", "expected"), [((2, 28, 9), "2.28.9"), (2804, "2804")], ids=["tuple", "number of old torch"]
)
def test_nccls_version_is_text(monkeypatch, version, expected):
    """Torch gave a number once and gives a tuple now; the record has text."""
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: version)

    assert expected == nccl_version()


@pytest.mark.parametrize("error", [AttributeError("_nccl_version"), RuntimeError("not compiled")])
def test_a_cpu_build_that_claims_nccl_has_none(monkeypatch, error):
    """Torch's CPU builds say that NCCL is there and can't tell its version."""

    def version() -> None:
        raise error

    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nccl, "version", version)

    assert nccl_version() is None
