"""What a trace's file says of steps and of the device, from events as torch's profiler writes them on a GPU."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.training.tracefile import busy_share, count_of, device_rows, read_events, step_seconds, union


def event(name, cat, ts, dur, device=None):
    args = {} if device is None else {"args": {"device": device, "stream": 7}}
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **args}


def step_on_a_gpu(device=0):
    """1000 us: a copy, a kernel twice, and the optimizer, whose range has a shadow on the device."""
    return [
        event("step", "user_annotation", 0.0, 900.0),
        event("Optimizer.step#SGD.step", "user_annotation", 500.0, 300.0),
        event("aten::addmm", "cpu_op", 100.0, 50.0),
        event("cudaLaunchKernel", "cuda_runtime", 110.0, 5.0),
        event("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 50.0, 30.0, device),
        event("gemm", "kernel", 120.0, 40.0, device),
        event("gemm", "kernel", 200.0, 20.0, device),
        event("multi_tensor_apply", "kernel", 520.0, 10.0, device),
        event("Optimizer.step#SGD.step", "gpu_user_annotation", 520.0, 400.0, device),
    ]


def test_the_table_has_kernels_and_copies_and_nothing_that_holds_them():
    """Operators, ranges and their shadows on the device would count each kernel again, gaps and all."""
    assert [
        ("gemm", 2, pytest.approx(60e-6)),
        ("Memcpy HtoD (Pinned -> Device)", 1, pytest.approx(30e-6)),
        ("multi_tensor_apply", 1, pytest.approx(10e-6)),
    ] == [(row["name"], row["calls"], row["seconds"]) for row in device_rows(step_on_a_gpu())]


def test_a_range_s_shadow_is_no_work():
    """The device worked for 100 of 1000 us, though the optimizer's shadow takes 400."""
    assert pytest.approx(0.1) == busy_share(step_on_a_gpu(), 1e-3)


def test_each_device_is_busy_for_itself():
    """DataParallel's devices work at the same time: their mean, not the union of their kernels."""
    second = [event("gemm", "kernel", 120.0, 300.0, 1)]

    assert pytest.approx((0.1 + 0.3) / 2) == busy_share([*step_on_a_gpu(), *second], 1e-3)


def test_without_a_device_nothing_is_said_of_one():
    """A CPU's trace has operators alone."""
    events = [event("step", "user_annotation", 0.0, 900.0), event("aten::addmm", "cpu_op", 100.0, 50.0)]

    assert busy_share(events, 1e-3) is None
    assert [] == device_rows(events)
    assert busy_share(step_on_a_gpu(), 0.0) is None


def test_steps_are_those_of_the_host():
    """The median of the ranges; a shadow of theirs on the device is another length."""
    lengths = (100.0, 300.0, 200.0)
    events = [event("step", "user_annotation", 0.0, dur) for dur in lengths]
    events.append(event("step", "gpu_user_annotation", 0.0, 5000.0, 0))

    assert pytest.approx(200e-6) == step_seconds(events)
    assert step_seconds([]) is None
    assert 3 + 1 == count_of(events, "step")


def test_a_file_gives_its_events_with_a_duration(tmp_path):
    """Marks, names of threads and what else a trace holds are left out."""
    path = tmp_path / "trace.json.gz"
    others = [{"ph": "M", "name": "process_name"}, {"ph": "s", "name": "ac2g", "ts": 1.0}]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "traceEvents": [*others, *step_on_a_gpu()]}, file)

    assert step_on_a_gpu() == read_events(str(path))


def test_a_control_character_in_a_name_spoils_no_trace(tmp_path):
    """torch writes names as they are."""
    path = tmp_path / "trace.json.gz"
    text = '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a\tb", "ts": 0, "dur": 1}]}'
    path.write_bytes(gzip.compress(text.encode()))

    assert ["a\tb"] == [found["name"] for found in read_events(str(path))]


def test_overlapping_kernels_count_once():
    """Kernels on two streams: the union of their times."""
    assert 5.0 == union([(0.0, 2.0), (1.0, 3.0), (5.0, 7.0), (5.5, 6.0)])
    assert 0.0 == union([])


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20))))
def test_a_union_is_as_long_as_the_points_that_it_holds(spans):
    """Of whole microseconds: as many as lie in any of the spans."""
    held = {point for first, length in spans for point in range(first, first + length)}

    assert len(held) == union([(first, first + length) for first, length in spans])
