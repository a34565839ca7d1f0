"""What the process that forks launches does before it forks; tests/perf/launch/test_forking.py launches with it."""

from __future__ import annotations

import pytest
import torch

from perf.training import server


def test_the_agent_asks_no_gpu(monkeypatch, tmp_path):
    """torchrun's configuration is made without asking CUDA for GPUs, after which no fork could use one."""

    def asked():
        pytest.fail("CUDA was asked")

    for module in (torch.cuda, getattr(torch, "accelerator", torch.cuda)):
        monkeypatch.setattr(module, "is_available", asked)
        monkeypatch.setattr(module, "device_count", asked)

    config = server.agent_config(
        ["--standalone", "--nproc-per-node=2", f"--log-dir={tmp_path}", "-m", "perf.training.worker"],
        "spec.json",
    )

    assert ("fork", 2) == (config.start_method, config.nproc_per_node)
    assert "c10d" == config.rdzv_backend
    assert asked is torch.cuda.is_available
