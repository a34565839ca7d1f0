"""The whole card on the CPU: the code that a GPU runs too, at sizes that take milliseconds."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from perf import contract
from perf.training.identity import Identity
from perf.training.rates import card
from perf.training.rates.card import SCALES, Scale, measure_card, rates_between
from perf.training.state import State
from perf.verdict.machine import RATES
from tests.perf.training.helpers import make_spec

TINY = Scale(side=32, copy=2**16, transfer=2**16, read=2**16, least_read=2**12, checkpoint=2**16)


def spec_of(folder, **changes):
    return make_spec(folder, plan="rates", workload="machine", min_seconds=0.01, timed_steps=0, **changes)


def test_one_rank_measures_its_device_its_host_and_its_storage(tmp_path, cpu):
    """Every rate that the driver's card names, in a record that keeps to the contract and holds no step."""
    startup: dict[str, float] = {}
    record = measure_card(spec_of(tmp_path), cpu, State(str(tmp_path), 0), startup, TINY)

    assert set(RATES["single", "cpu"]) == set(record.rates)
    assert record == contract.decode(contract.RankRecord, contract.encode(record), "here")
    assert ([], 0, 0) == (record.step_seconds, record.total_steps, record.window_samples)
    assert startup["rates"] > 0
    assert "rates" == json.loads((tmp_path / "state-0.json").read_text(encoding="utf-8"))["phase"]


def test_ranks_measure_what_lies_between_them(tmp_path, cpu, process_group, monkeypatch):
    """An all-reduce of each network's gradients; there is no copy between GPUs on a CPU."""
    # A single rank has nobody to send to: its bus bandwidth of 0 has no spread, and is not what is tested here.
    monkeypatch.setattr(card, "all_reduces", lambda device, timer: [("all_reduce_x", timer)])
    found = dict(rates_between(spec_of(tmp_path, strategy="ddp", ranks_per_node=2), cpu, TINY))

    assert ["all_reduce_x"] == list(found)
    assert 7 == found["all_reduce_x"].agree(7)


@pytest.mark.parametrize("rank", [0, 1])
def test_one_of_two_gpus_copies_to_the_next(tmp_path, rank, monkeypatch):
    """Rank 0 copies to its neighbour while the others wait, both before and after."""
    waited = []
    monkeypatch.setattr(card, "all_reduces", lambda device, timer: [])
    monkeypatch.setattr(card, "timer_on", lambda devices, box, *, together=False: devices)
    monkeypatch.setattr(
        card, "peer_copy", lambda here, there, timer, size: ("peer_copy", (here, there, timer))
    )
    monkeypatch.setattr(card.strategies, "wait_for_all", lambda: waited.append(True))
    gpu = Identity(rank, 2, rank, "node", [torch.device("cuda", rank)])
    found = dict(rates_between(spec_of(tmp_path, strategy="ddp", ranks_per_node=2), gpu, TINY))

    first, second = torch.device("cuda", 0), torch.device("cuda", 1)
    assert ({} if rank else {"peer_copy": (first, second, [first, second])}) == found
    assert [True, True] == waited


def test_a_gpu_s_card_holds_what_the_driver_expects(tmp_path, monkeypatch):
    """The names that a GPU's card gives are those of the catalogue; what is timed on one is faked here."""
    names = []

    def fake(*found):
        return lambda *arguments: names.extend(found) or [(name, None) for name in found]

    monkeypatch.setattr(card, "timer_on", lambda devices, box: SimpleNamespace())
    monkeypatch.setattr(
        card, "matrix_products", fake(*(f"matmul_{p}" for p in ("fp32", "tf32", "fp16", "bf16")))
    )
    monkeypatch.setattr(card, "device_copy", lambda *a: ("memory_copy", None))
    directions = ("host_to_device", "device_to_host")
    monkeypatch.setattr(
        card, "transfers", fake(*(f"{d}_{kind}" for d in directions for kind in ("pinned", "pageable")))
    )
    monkeypatch.setattr(card, "python_loop", lambda *a: ("python_loop", None))
    monkeypatch.setattr(card, "kernel_launches", fake("kernel_launches", "kernel_round_trips"))
    monkeypatch.setattr(card, "file_reads", fake("file_read", "file_read_cached"))
    monkeypatch.setattr(card, "checkpoint_write", lambda *a: ("checkpoint_write", None))

    found = [
        name for name, _ in card.rates_of_one(spec_of(tmp_path), torch.device("cuda", 0), SCALES["cuda"])
    ]
    assert sorted(RATES["single", "cuda"]) == sorted(found)
