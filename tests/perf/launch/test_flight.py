from __future__ import annotations

import os

import pytest

from perf.launch.flight import ask_for_traces, flight_recorder


@pytest.fixture
def nccl_spec(make_spec, tmp_path):
    """The spec of an NCCL launch of two ranks."""
    return make_spec(device="cuda", backend="nccl", gpus=2, out_dir=str(tmp_path))


def test_a_rank_of_nccl_keeps_its_collectives(nccl_spec, make_spec):
    """Dumps lie in the launch's folder; what the caller set is left alone; gloo has no recorder."""
    found = flight_recorder(nccl_spec, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "5"})

    assert f"{nccl_spec.out_dir}/nccl-trace-" == found["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
    assert found["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] == found["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE" not in found
    assert {} == flight_recorder(make_spec(), {})


def test_ranks_that_listen_are_asked_for_their_dump(nccl_spec, tmp_path):
    """A pipe without a reader, and a plain file of that name, stop nobody."""
    listening, silent = tmp_path / "nccl-trace-0.pipe", tmp_path / "nccl-trace-1.pipe"
    for pipe in (listening, silent):
        os.mkfifo(pipe)
    (tmp_path / "nccl-trace-2.pipe").write_text("")
    reader = os.open(listening, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert [listening] == ask_for_traces(nccl_spec)
        assert b"1\n" == os.read(reader, 10)
    finally:
        os.close(reader)
    assert "" == (tmp_path / "nccl-trace-2.pipe").read_text()
