"""Traces of a few steps, on the CPU, over a workload that trains in microseconds."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace

import pytest
import torch

from perf import contract
from perf.report.kernels import PARTS, names_in_trace
from perf.training import tracing
from perf.training.session import Session
from perf.training.settings import NotInForce, Unavailable
from perf.training.state import State
from perf.training.tracing import RANGES, NsysTracer, TorchTracer
from tests.perf.training.helpers import TinyWorkload, make_spec


def trained(tmp_path, identity, **changes):
    spec = make_spec(tmp_path, timed_steps=20, **changes)
    torch.manual_seed(spec.seed)
    return Session(spec, identity, TinyWorkload(), State(str(tmp_path), 0), {"imports": 1.0}).run()


def test_a_trace_opens_and_holds_every_part_of_a_step(tmp_path, cpu):
    """Ten steps, each with its ranges, and the loader's own; the table says what took the time."""
    record = trained(tmp_path, cpu, trace="torch")
    found = names_in_trace(tmp_path / record.trace)

    assert set(PARTS) == set(RANGES) <= found
    assert any(name.startswith("enumerate(DataLoader)") for name in found)
    facts = record.trace_facts
    assert (10, "torch", None) == (facts["steps"], facts["tool"], facts["device_busy_share"])
    assert 0 < facts["step_seconds"] < facts["seconds"]
    assert 15 >= len(facts["top"]) > 3
    assert all(0 < row["share"] <= 1 for row in facts["top"])


def test_a_trace_trains_what_the_loop_trains(tmp_path, cpu):
    """Ranges change no number: the parameters are those of the plain loop, bit for bit."""
    plain, traced = trained(tmp_path, cpu), trained(tmp_path, cpu, trace="torch")

    assert plain.parameters_digest == traced.parameters_digest
    assert plain.trace is plain.trace_facts is None


@pytest.mark.parametrize("on_gpu", [False, True])
def test_the_table_has_a_gpus_kernels_or_a_cpus_operators(tmp_path, on_gpu):
    """What the file says that the device did; without a device, what the host did by the profiler's own account."""
    path = tmp_path / "t.json.gz"
    step = {"ph": "X", "cat": "user_annotation", "name": "step", "ts": 0.0, "dur": 900.0}
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 100.0, "dur": 250.0, "args": {"device": 0}}
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [step, *([kernel] * on_gpu)]}).encode()))
    operator = SimpleNamespace(key="aten::addmm", count=2, self_cpu_time_total=40.0)
    seen = SimpleNamespace(key_averages=lambda: [operator])
    facts = tracing._facts_of(seen, str(path), 1e-3, on_gpu)

    expected = ("gemm", 1, 250e-6) if on_gpu else ("aten::addmm", 2, 40e-6)
    assert [expected] == [(row["name"], row["calls"], pytest.approx(row["seconds"])) for row in facts["top"]]
    assert (pytest.approx(0.25) if on_gpu else None) == facts["device_busy_share"]
    assert pytest.approx(900e-6) == facts["step_seconds"]


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_trace_that_cannot_be_read_is_an_error(tmp_path, text):
    """One sentence that names the file, not a parser's."""
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(text.encode()))

    with pytest.raises(NotInForce, match=r"t\.json\.gz can't be read"):
        tracing._facts_of(None, str(path), 1e-3, on_gpu=True)


def test_all_reduces_are_in_the_trace(tmp_path, cpu, process_group):
    """As many a step as were counted after training."""
    record = trained(tmp_path, cpu, trace="torch", strategy="ddp", backend="gloo")

    assert record.effective["ddp"]["all_reduces"] == record.trace_facts["all_reduces"] == 1.0


@pytest.mark.parametrize("tracer", ["torch", "nsys"])
def test_an_empty_trace_is_an_error(tmp_path, tracer, monkeypatch):
    """A launch that ends before the capture does has captured nothing; it says how many steps it had."""
    made = (
        TorchTracer(str(tmp_path / "t.json.gz"), 5, torch.device("cpu"))
        if tracer == "torch"
        else NsysTracer(5, torch.device("cuda", 0), 1)
    )
    for _ in range(4):
        made.step_ended()

    with pytest.raises(NotInForce, match="is empty: it ends with step 15, and the launch had 4"):
        made.facts()


def test_one_rank_tells_nsys_where_to_begin_and_end(monkeypatch):
    """Behind the warm-up, and ten steps later; the other ranks say nothing."""
    told = []
    monkeypatch.setattr(tracing.torch.cuda, "synchronize", lambda device: told.append("wait"))
    monkeypatch.setattr(tracing.torch.cuda.profiler, "start", lambda: told.append("start"))
    monkeypatch.setattr(tracing.torch.cuda.profiler, "stop", lambda: told.append("stop"))
    first, second = (NsysTracer(3, torch.device("cuda", rank), rank) for rank in (0, 1))
    for _ in range(20):
        first.step_ended()
        second.step_ended()

    assert ["wait", "start", "wait", "stop"] == told
    assert {"tool": "nsys", "steps": 10} == first.facts() == second.facts()


def test_only_the_tutorials_loop_is_traced(tmp_path, cpu):
    """Mixed precision trains in a step of its own."""
    with pytest.raises(Unavailable, match="traces and line profiles"):
        trained(tmp_path, cpu, trace="torch", precision="bf16")


def test_a_record_with_a_trace_is_no_judged_one(tmp_path, cpu):
    """The contract knows what profile a launch was for."""
    assert contract.TRACE_FILE.format(rank=0) == trained(tmp_path, cpu, trace="torch").trace
