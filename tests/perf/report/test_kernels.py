"""What a trace holds, in words, as a table and as a picture."""

from __future__ import annotations

import gzip
import json

import pytest

from perf.report.figures.kernels import kernels
from perf.report.kernels import TraceError, kernels_in_words, names_in_trace, table_of
from tests.perf.helpers.launch_records import record

FACTS = {
    "tool": "torch",
    "steps": 10,
    "seconds": 0.05,
    "device_busy_share": 0.5,
    "top": [
        {"name": "gemm<float>", "calls": 20, "seconds": 0.02, "share": 0.8},
        {"name": "\x1b[31mred", "calls": 1, "seconds": 0.005, "share": 0.2},
    ],
}


def trace(path, events):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    return path


def test_names_of_a_trace_are_read(tmp_path):
    """Whatever kind of event; one without a name is none."""
    path = trace(tmp_path / "t.json.gz", [{"name": "step"}, {"name": "forward"}, {"ph": "M"}])

    assert {"step", "forward"} == names_in_trace(path)


@pytest.mark.parametrize("broken", ["missing", "cut", "empty", "text"])
def test_a_trace_that_cannot_be_read_is_named(tmp_path, broken):
    """Missing, cut short, without events, or no trace at all."""
    path = tmp_path / "t.json.gz"
    if broken == "cut":
        whole = trace(path, [{"name": f"event {number}"} for number in range(1000)]).read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    elif broken == "empty":
        trace(path, [])
    elif broken == "text":
        path.write_text("no trace", encoding="utf-8")

    with pytest.raises(TraceError, match="t.json.gz"):
        names_in_trace(path)


def test_the_device_is_said_to_be_busy_or_not():
    """Share of kernels, and of the time; on a CPU there is no device to be busy."""
    said = " ".join(kernels_in_words(FACTS))

    assert "gemm<float> 80.0% (20 calls)" in said
    assert "busy for 50.0% of that time: 2.5 ms a step." in said
    assert "busy" not in " ".join(kernels_in_words({**FACTS, "device_busy_share": None}))


def test_a_hostile_name_reaches_no_terminal():
    """A kernel's name is text from outside."""
    one = record(trace_facts=[FACTS])

    assert "\x1b" not in table_of(one) + " ".join(kernels_in_words(FACTS))


def test_a_traced_launch_has_a_picture():
    """A bar a kernel, and the table behind it; a launch that was not traced has none."""
    (figure,) = kernels([record(trace_facts=[FACTS], traces=["profiles/x.json.gz"]), record()])

    assert [0.8, 0.2] == list(figure.series[0].y if not figure.series[0].along_x else figure.series[0].x)
    assert 2 == len(figure.table.rows)
    assert "profiles/x.json.gz" in figure.table.note


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"trace_facts": [FACTS]}, "torch-trace"),
        ({"trace_facts": [{"tool": "nsys", "steps": 10}]}, "nsys"),
        ({"line_profiles": ["x.lprof"]}, "line-profile"),
        ({"phase_seconds": [{}]}, "phases"),
    ],
)
def test_a_record_says_what_it_was_profiled_for(changes, expected):
    """Whoever judges leaves out every launch with a profile."""
    assert expected == record(**changes).profiled
